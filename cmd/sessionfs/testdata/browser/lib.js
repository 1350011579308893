// Functions of the tests in a browser. Each test is the body of an async function behind this text.
"use strict";
const all = selector => [...document.querySelectorAll(selector)];
const one = selector => document.querySelector(selector);
const shown = selector => all(selector).filter(e => e.offsetParent).length;
const pause = ms => new Promise(done => setTimeout(done, ms));

const is = (want, got) => {
  if (want !== got) throw Error(`want ${want}, got ${got}`);
};
const not = (other, got) => {
  if (other === got) throw Error(`got ${got}`);
};

// search types into the search field.
const search = text => {
  const field = one("input[type=search]");
  field.value = text;
  field.dispatchEvent(new Event("input", {bubbles: true}));
  return pause(400);
};

// deadAnchors returns the links within the page that lead nowhere.
const deadAnchors = () => all("a[href^='#']").map(a => decodeURIComponent(a.hash.slice(1))).filter(id => !document.getElementById(id));

// faint returns the texts whose contrast is below that of WCAG AA, 4.5.
const faint = () => {
  const paint = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
  const rgb = color => {
    paint.clearRect(0, 0, 1, 1);
    paint.fillStyle = color;
    paint.fillRect(0, 0, 1, 1);
    return [...paint.getImageData(0, 0, 1, 1).data];
  };
  const light = color => {
    const [r, g, b] = color.map(v => (v /= 255) <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
    return .2126 * r + .7152 * g + .0722 * b;
  };
  const found = new Set();
  for (const e of all("body *")) {
    if (!e.offsetParent || ![...e.childNodes].some(n => n.nodeType === 3 && n.data.trim()) || e.matches(".skip, legend")) continue;
    let behind = e, back = rgb(getComputedStyle(e).backgroundColor);
    while (back[3] === 0 && (behind = behind.parentElement)) back = rgb(getComputedStyle(behind).backgroundColor);
    const [a, b] = [light(rgb(getComputedStyle(e).color)), light(back)].sort((a, b) => b - a);
    if ((a + .05) / (b + .05) < 4.5) found.add(e.outerHTML.slice(0, 90));
  }
  return [...found];
};
