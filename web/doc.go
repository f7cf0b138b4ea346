// Package web has the web pages: a terminal that shows the market, and the licences of the pages'
// components. The files are embedded as they are; nothing is built.
//
// A page is HTML at an address of its own, in one form for each look that a cookie may ask for.
// Everything else is below Folder and a hash, which changes with each change of any file, so
// browsers may keep it permanently. docs/web.md describes how to change a page.
//
// The files:
//
//	web.go    the pages and all files in each sent form
//	mails.go  the page with the demo's mails
package web
