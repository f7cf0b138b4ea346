// What a tab keeps until it is closed, over reloads: texts by name.

/** remember keeps a text; "" forgets it. @param {string} name @param {string} is */
export function remember(name, is) {
	try {
		if (is) sessionStorage.setItem(name, is);
		else sessionStorage.removeItem(name);
	} catch {
		// where a browser lets pages keep nothing, a reload forgets
	}
}

/** remembered returns what is kept; "": nothing. @param {string} name */
export function remembered(name) {
	try {
		return sessionStorage.getItem(name) ?? "";
	} catch {
		return "";
	}
}
