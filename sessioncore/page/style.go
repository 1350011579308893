package page

// head is what precedes the transcript; its argument is the title. The policy lets a browser load nothing at all, were
// there anything to load.
const head = `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<meta name="referrer" content="no-referrer">
<title>%s</title>
<style>
:root { color-scheme: light dark; }
body { margin: 0 auto; max-width: 46rem; padding: 1rem; font: 1rem/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.5rem; line-height: 1.25; }
h2 { margin-top: 2.5rem; padding-top: .75rem; border-top: 1px solid rgba(128, 128, 128, .5); font-size: 1rem; }
code { font: .875em/1.4 ui-monospace, monospace; }
pre { padding: .75rem; overflow-x: auto; border-radius: .375rem; background: rgba(128, 128, 128, .15); overflow-wrap: normal;
  font: .8125rem/1.45 ui-monospace, monospace; tab-size: 4; }
pre code { font: inherit; }
blockquote { margin: 1rem 0; padding-left: 1rem; border-left: 3px solid rgba(128, 128, 128, .5); opacity: .85; }
img { max-width: 100%%; height: auto; }
table { display: block; overflow-x: auto; border-collapse: collapse; }
th, td { padding: .25rem .5rem; border: 1px solid rgba(128, 128, 128, .5); text-align: left; }
@media print {
  body { max-width: none; padding: 0; font-size: 10pt; }
  pre { white-space: pre-wrap; overflow-wrap: anywhere; font-size: 8pt; }
  h1, h2 { break-after: avoid; }
  img { break-inside: avoid; }
}
</style>
</head>
<body>
`

// foot is what follows it.
const foot = "</body>\n</html>\n"
