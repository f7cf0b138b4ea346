// Sends a body that is too large, in the ways that Node has, and says what it was answered with.
// The body is written before the answer is looked at, and once in pieces.
import http from 'node:http'
import https from 'node:https'

const [url, size, times] = [process.argv[2], Number(process.argv[3]), Number(process.argv[4])]
const body = Buffer.alloc(size, 'x')

const request = (headers, send) => new Promise((resolve, reject) => {
	const lib = url.startsWith('https') ? https : http
	const r = lib.request(url, { method: 'POST', agent: false, headers }, (answer) => {
		let text = ''
		answer.on('data', (part) => { text += part })
		answer.on('end', () => resolve(`${answer.statusCode} ${text.trim()}`))
		answer.on('error', reject)
	})
	r.on('error', reject)
	send(r)
})

const ways = {
	'request': () => request({ 'Content-Length': size }, (r) => r.end(body)),
	'request in chunks': () => request({}, (r) => {
		for (let at = 0; at < size; at += 10_000) r.write(body.subarray(at, at + 10_000))
		r.end()
	}),
	'request that asks before': () => request({ 'Content-Length': size, Expect: '100-continue' }, (r) => {
		r.on('continue', () => r.destroy(new Error('the server answered 100')))
		r.flushHeaders()
	}),
	'fetch': async () => {
		const answer = await fetch(url, { method: 'POST', body })
		return `${answer.status} ${(await answer.text()).trim()}`
	},
}

for (const [name, way] of Object.entries(ways)) {
	for (let i = 0; i < times; i++) {
		try {
			console.log(`${name}: ${await way()}`)
		} catch (e) {
			console.log(`${name}: ${e} ${e.cause ?? ''}`)
		}
	}
}
