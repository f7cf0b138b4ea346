// Colours of the style sheets, for canvases.

const probe = document.createElement("span");
probe.hidden = true;
document.body.append(probe);

/** colour returns what a colour's name means in the theme that is shown. @param {string} name */
export function colour(name) {
	probe.style.color = `var(${name})`;
	return getComputedStyle(probe).color;
}
