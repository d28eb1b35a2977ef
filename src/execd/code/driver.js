// SPDX-License-Identifier: Apache-2.0
// driver.js - runs the cells of a JavaScript context inside Node.js
//
// It is compiled into the daemon and read by Node from fd 3, the private
// channel. Requests come as "run NUMBER LENGTH\n" and so many bytes of code;
// what goes back are frames "WORD NUMBER LENGTH\n" and a payload
// (src/execd/code/frame.h). stdout and stderr are the process's own.
//
// A cell is evaluated by the inspector of the own process, the way a console
// of developer tools does it: it may await at top level and declare a const
// again, and its names stay for the next cell. That call is made from inside
// a script that SIGINT breaks off, so a loop without end can be interrupted.
// While a cell awaits, the channel tells of an interrupt ("int NUMBER 0\n"): a
// signal that meets Node between the two is lost, so it comes second.
'use strict';
(() => {
const fs = require('fs');
const inspector = require('inspector');
const Module = require('module');
const path = require('path');
const util = require('util');
const vm = require('vm');

const TEXT_MAX = 1024 * 1024;
const ERROR_MAX = 64 * 1024;
const PAYLOAD_MAX = 4 * 1024 * 1024;
const LINES_MAX = 500;
const FD = 3;

const session = new inspector.Session();
session.connect();
const pause = new Int32Array(new SharedArrayBuffer(4));
let run = 0, count = 0, counted = false, running = false;

function send(word, payload) {
	const body = Buffer.from(payload || '');
	let left = Buffer.concat([Buffer.from(
		`${word} ${run} ${body.length}\n`), body]);
	while (left.length) {
		try {
			left = left.subarray(fs.writeSync(FD, left));
		} catch (e) {
			if (e.code !== 'EAGAIN')
				process.exit(1);
			Atomics.wait(pause, 0, 0, 2);
		}
	}
}

function cut(text, limit) {
	text = String(text);
	return text.length <= limit ? text
		: `${text.slice(0, limit)}... (${text.length - limit} characters more)`;
}

function sendCount() {
	if (!counted)
		send('count', String(count));
	counted = true;
}

function sendResult(text) {
	sendCount();
	let payload = JSON.stringify({ 'text/plain': cut(text, TEXT_MAX) });
	if (payload.length > PAYLOAD_MAX)
		payload = JSON.stringify({ 'text/plain': cut(text, ERROR_MAX) });
	send('result', payload);
}

// Lines of the cell only, not of what called it.
function ownLines(stack) {
	const lines = String(stack).split('\n');
	const end = lines.findIndex((l) => /node:inspector|evalmachine/.test(l));
	return (end < 0 ? lines : lines.slice(0, end)).slice(0, LINES_MAX)
		.map((l) => cut(l, 2000));
}

function finish(word, payload) {
	running = false;
	sendCount();
	send(word, payload);
}

function fail(ename, evalue, traceback) {
	finish('error', JSON.stringify({ ename: cut(ename, 200),
		evalue: cut(evalue, ERROR_MAX), traceback }));
}

function failWith(e) {
	if (!util.types.isNativeError(e)) {
		const text = util.inspect(e);
		return fail('Uncaught', text, [`Uncaught ${cut(text, 2000)}`]);
	}
	let name = 'Error', message = '', stack = '';
	try {
		name = e.name, message = e.message, stack = e.stack;
	} catch {}
	fail(name, message, ownLines(stack || `${name}: ${message}`));
}

// The inspector tells of objects by an id; this brings the object itself.
function objectOf(remote) {
	if (!remote.objectId)
		return remote.unserializableValue !== undefined
			? vm.runInThisContext(remote.unserializableValue)
			: remote.value;
	let value;
	take = (v) => { value = v; };
	session.post('Runtime.callFunctionOn', {
		functionDeclaration:
			"function (v) { globalThis[Symbol.for('sallyport')].take(v); }",
		objectId: remote.objectId,
		arguments: [{ objectId: remote.objectId }] }, () => {});
	take = null;
	session.post('Runtime.releaseObject', { objectId: remote.objectId },
		() => {});
	return value;
}

function settled(number, error, reply) {
	if (number !== run || !running)
		return; // it was interrupted, or is an old one
	if (error)
		return fail('Error', error.message, [String(error.message)]);
	try {
		if (reply.exceptionDetails) {
			const remote = reply.exceptionDetails.exception;
			return failWith(remote ? objectOf(remote)
				: new Error(reply.exceptionDetails.text));
		}
		const value = objectOf(reply.result);
		if (value !== undefined)
			sendResult(util.inspect(value));
		finish('done');
	} catch (e) {
		failWith(e);
	}
}

function interrupted() {
	if (running)
		fail('Interrupted', 'the run was interrupted',
			['Interrupted: the run was interrupted']);
}

// Where does the string, comment, template text or regular expression that
// begins at `i` end? 0: none begins there.
function skipFrom(code, i, before) {
	const c = code[i];
	if (c === '"' || c === "'") {
		let j = i + 1;
		while (j < code.length && code[j] !== c && code[j] !== '\n')
			j += code[j] === '\\' ? 2 : 1;
		return j + 1;
	}
	if (c !== '/')
		return 0;
	if (code[i + 1] === '/') {
		const j = code.indexOf('\n', i);
		return j < 0 ? code.length : j;
	}
	if (code[i + 1] === '*') {
		const j = code.indexOf('*/', i + 2);
		return j < 0 ? code.length : j + 2;
	}
	if (!/(^|[=(,:;!&|?{}[+\-*%~<>^]|\breturn|\btypeof)\s*$/.test(before))
		return 0; // a division
	const m = /^\/(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n[])+\//.exec(
		code.slice(i, i + 4096));
	return m ? i + m[0].length : 0;
}

// What the inspector evaluates cannot import(); a function of ours can.
function withImports(code) {
	if (!code.includes('import'))
		return code;
	let out = '', i = 0;
	const templates = []; // depth of braces inside each `${`
	while (i < code.length) {
		const c = code[i];
		const end = skipFrom(code, i, out.slice(-64));
		if (end) {
			out += code.slice(i, end);
			i = end;
			continue;
		}
		const closes = c === '}' && templates.length &&
			templates[templates.length - 1] === 0;
		if (c === '`' || closes) {
			if (closes)
				templates.pop();
			let j = i + 1;
			while (j < code.length && code[j] !== '`' &&
			       !(code[j] === '$' && code[j + 1] === '{'))
				j += code[j] === '\\' ? 2 : 1;
			const opens = code[j] === '$';
			if (opens)
				templates.push(0);
			j += opens ? 2 : 1;
			out += code.slice(i, j);
			i = j;
			continue;
		}
		if (templates.length && (c === '{' || c === '}'))
			templates[templates.length - 1] += c === '{' ? 1 : -1;
		const m = c === 'i' && !/[\w$.]$/.test(out) &&
			/^import(\s*)\(/.exec(code.slice(i, i + 200));
		out += m ? `__import${m[1]}(` : c;
		i += m ? m[0].length : 1;
	}
	return out;
}

function evaluate(code) {
	const number = run;
	const expression = `${withImports(code)}\n//# sourceURL=cell-${count}.js`;
	session.post('Runtime.evaluate', { expression, replMode: true,
		awaitPromise: true, userGesture: true },
		(error, reply) => settled(number, error, reply));
}

// The two ways back from evaluated code into this file.
let next = null, take = null;
Object.defineProperty(globalThis, Symbol.for('sallyport'), {
	enumerable: false, configurable: false, writable: false,
	value: Object.freeze({
		enter: () => {
			const code = next;
			next = null;
			if (code === null)
				return;
			send('begin');
			evaluate(code);
		},
		take: (v) => {
			if (take)
				take(v);
		},
	}),
});
const script = new vm.Script("globalThis[Symbol.for('sallyport')].enter()",
	{ filename: 'evalmachine' });

function start(number, code) {
	run = number;
	count++;
	counted = false;
	running = true;
	next = code;
	try {
		script.runInThisContext({ breakOnSigint: true });
	} catch (e) {
		if (e && e.code === 'ERR_SCRIPT_EXECUTION_INTERRUPTED')
			interrupted();
		else
			failWith(e);
	}
}

const home = path.join(process.cwd(), 'cell.js');
const own = new Module(home);
own.filename = home;
own.paths = Module._nodeModulePaths(path.dirname(home));
const require_ = Module.createRequire(home);
const url = require('url');
for (const [name, value] of Object.entries({ require: require_, module: own,
	exports: own.exports,
	__import: (what) => {
		what = String(what);
		return import(/^\.{0,2}\//.test(what)
			? url.pathToFileURL(path.resolve(what)).href
			: builtin(what) ? what
			: url.pathToFileURL(require_.resolve(what)).href);
	} }))
	Object.defineProperty(globalThis, name, { value, writable: true,
		configurable: true, enumerable: false });

function builtin(name) {
	return /^(node|data|file|https?):/.test(name) ||
		Module.builtinModules.includes(name);
}

// What a timer or a promise of an earlier cell throws ends no context.
process.on('uncaughtException', (e) => {
	process.stderr.write(`Uncaught ${util.inspect(e)}\n`);
});
process.on('unhandledRejection', (e) => {
	process.stderr.write(`Uncaught (in promise) ${util.inspect(e)}\n`);
});
process.on('SIGINT', interrupted);

let input = Buffer.alloc(0), waiting = null;
const channel = new (require('net').Socket)({ fd: FD, readable: true,
	writable: false });
channel.on('data', (bytes) => {
	input = input.length ? Buffer.concat([input, bytes]) : bytes;
	for (;;) {
		if (!waiting) {
			const end = input.indexOf(10);
			if (end < 0)
				return;
			waiting = String(input.subarray(0, end)).split(' ');
			input = input.subarray(end + 1);
		}
		const [, number, length] = waiting.map(Number);
		if (waiting[0] === 'int') {
			waiting = null;
			if (number === run)
				interrupted();
			continue;
		}
		if (input.length < length)
			return;
		const code = String(input.subarray(0, length));
		input = input.subarray(length);
		waiting = null;
		start(number, code);
	}
});
channel.on('error', () => process.exit(0));
channel.on('end', () => process.exit(0));
send('ready', `Node.js ${process.version}`);
})();
