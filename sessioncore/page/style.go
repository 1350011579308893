package page

// begin is what precedes the transcript; its argument is the title. The policy lets a browser load nothing at all, were
// there anything to load. The table of contents is written last, as it is known last, and shown first.
const begin = `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<meta name="referrer" content="no-referrer">
<title>%s</title>
<style>
:root { color-scheme: light dark; }
body { display: flex; flex-direction: column; margin: 0 auto; max-width: 46rem; padding: 1rem;
  font: 1rem/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
main { min-width: 0; }
nav { order: -1; max-height: 40vh; overflow-y: auto; font-size: .875rem; }
nav::before { content: "Contents"; font-weight: bold; }
h1, h2, h3, h4, h5, h6, p, li, th, td { unicode-bidi: plaintext; }
h1 { font-size: 1.5rem; line-height: 1.25; }
h2 { margin-top: 2.5rem; padding-top: .75rem; border-top: 1px solid rgba(128, 128, 128, .5); font-size: 1rem; }
h5, h6 { margin: 1rem 0; font-size: 1rem; }
code { font-family: ui-monospace, monospace; font-size: .875em; }
pre { padding: .75rem; overflow-x: auto; border-radius: .375rem; background: rgba(128, 128, 128, .15); overflow-wrap: normal;
  font: .8125rem/1.45 ui-monospace, monospace; tab-size: 4; }
pre code { font-size: inherit; }
.add, .del { display: inline-block; min-width: 100%%; }
.add { background: rgba(46, 160, 67, .25); }
.del { background: rgba(248, 81, 73, .25); }
.at { opacity: .6; }
summary { cursor: pointer; }
[href^="#"] { color: inherit; text-decoration: none; }
[href^="#"]:hover { text-decoration: underline; }
div:target { background: rgba(255, 200, 0, .15); }
blockquote { margin: 1rem 0; padding-left: 1rem; border-left: 3px solid rgba(128, 128, 128, .5); opacity: .85; }
img { max-width: 100%%; height: auto; }
table { display: block; overflow-x: auto; border-collapse: collapse; overflow-wrap: normal; }
th, td { padding: .25rem .5rem; border: 1px solid rgba(128, 128, 128, .5); text-align: start; }
@media (min-width: 66rem) {
  body:has(nav) { display: grid; grid-template-columns: 16rem minmax(0, 1fr); gap: 2rem; max-width: 64rem; }
  nav { position: sticky; top: 0; align-self: start; max-height: 100vh; }
}
@media print {
  body, body:has(nav) { display: block; max-width: none; padding: 0; font-size: 10pt; }
  nav { display: none; }
  details::details-content { content-visibility: visible; }
  pre, table { overflow-wrap: anywhere; font-size: 8pt; }
  pre { white-space: pre-wrap; }
  h1, h2 { break-after: avoid; }
  img { break-inside: avoid; }
}
</style>
</head>
<body>
<main>
`

// end is what follows it.
const end = "</body>\n</html>\n"
