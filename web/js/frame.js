// What panels share on the page.

/**
 * inFrame returns what calls a function in the next frame, once however often it is asked to.
 * @param {() => void} paint
 */
export function inFrame(paint) {
	let isWaiting = false;
	return () => {
		if (isWaiting) return;
		isWaiting = true;
		requestAnimationFrame(() => {
			isWaiting = false;
			paint();
		});
	};
}
