package browser

// LowContrast is JavaScript that lists the texts of the page that stand out from what is behind them by
// less than 4.5 to 1 (WCAG 2.2, success criterion 1.4.3).
const LowContrast = `(() => {
	const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
	const known = new Map();
	const rgba = color => {
		if (!known.has(color)) {
			canvas.clearRect(0, 0, 1, 1);
			canvas.fillStyle = color;
			canvas.fillRect(0, 0, 1, 1);
			known.set(color, [...canvas.getImageData(0, 0, 1, 1).data]);
		}
		return known.get(color);
	};
	const over = (top, bottom, alpha) => bottom.map((c, i) => i < 3 ? top[i] * alpha + c * (1 - alpha) : 255);
	const behind = e => {
		if (!e) return [255, 255, 255, 255];
		const own = rgba(getComputedStyle(e).backgroundColor);
		return own[3] === 255 ? own : over(own, behind(e.parentElement), own[3] / 255);
	};
	const luminance = c => [.2126, .7152, .0722].reduce((sum, weight, i) => {
		const v = c[i] / 255;
		return sum + weight * (v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
	}, 0);
	const low = [];
	for (const e of document.querySelectorAll("body *")) {
		const text = [...e.childNodes].filter(n => n.nodeType === 3).map(n => n.data.trim()).join("");
		if (!text || !e.checkVisibility({visibilityProperty: true}) || e.tagName === "SCRIPT") continue;
		const back = behind(e);
		let alpha = 1;
		for (let p = e; p; p = p.parentElement) alpha *= getComputedStyle(p).opacity;
		const a = luminance(over(rgba(getComputedStyle(e).color), back, alpha)), b = luminance(back);
		const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
		if (ratio < 4.5) low.push(e.className + " " + text.slice(0, 30) + " " + ratio.toFixed(2));
	}
	return [...new Set(low)];
})()`
