// Preloaded into Node programs by unwire: every TCP connection goes to the
// recording proxy's redirect listener. The proxy is asked first whether the
// server can be reached, so that a connection that would fail still does; and
// the number of the local port tells it where the connection was to go.
// Both requests carry the token that unwire has put into the environment: the
// proxy serves nobody else.
// Connections to the proxy itself are left alone, so a client that speaks to
// the proxy by itself is not recorded twice.
'use strict';
const fs = require('node:fs');
const net = require('node:net');
const os = require('node:os');
const path = require('node:path');
const { getEnvironmentData, setEnvironmentData } = require('node:worker_threads');
const [proxyHost, proxyPort, redirectHost, redirectPort] = JSON.parse(fs.readFileSync(path.join(__dirname, 'hook.json'), 'utf8'));
const proxyAddress = net.isIPv6(proxyHost) ? `[${proxyHost}]:${proxyPort}` : `${proxyHost}:${proxyPort}`;
const connect = net.Socket.prototype.connect;
const maxAnswer = 4096;

// A worker may have another environment than its process.
const tokenVariable = 'UNWIRE_HOOK_TOKEN';
const token = process.env[tokenVariable] || getEnvironmentData(tokenVariable);
if (token) setEnvironmentData(tokenVariable, token);

// mark leaves an empty file for unwire to find.
function mark(name) {
  try {
    fs.writeFileSync(path.join(__dirname, name), '');
  } catch {
    // The program may outlive the folder.
  }
}

// openControl opens a connection to the proxy that does not keep the process
// alive, unless an answer is waited for.
function openControl(failed) {
  const control = new net.Socket();
  control.setEncoding('latin1');
  control.on('error', failed);
  connect.call(control, { host: proxyHost, port: proxyPort });
  return control;
}

// post sends one request, and calls back with the status and the body of its
// answer; with status 0 if the proxy does not answer.
function post(control, name, value, callback) {
  let text = '';
  let done = false;
  const end = (status, body) => {
    if (done) return;
    done = true;
    control.off('data', read).off('close', closed);
    callback(status, body);
  };
  const closed = () => end(0, '');
  const read = (data) => {
    text += data;
    const at = text.indexOf('\r\n\r\n');
    const length = Number(/^content-length: *(\d+)/im.exec(text)?.[1] ?? 0);
    if (at >= 0 && text.length >= at + 4 + length) end(Number(text.slice(9, 12)), text.slice(at + 4));
    else if (text.length > maxAnswer) control.destroy();
  };
  control.on('data', read).on('close', closed);
  if (control.destroyed) process.nextTick(closed);
  const body = JSON.stringify(value);
  control.write(`POST /.well-known/unwire/${name} HTTP/1.1\r\nHost: ${proxyAddress}\r\nUnwire-Token: ${token}\r\n`
    + `Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
}

// ask calls back with the way in which connecting to a server fails, or with
// nothing. A proxy that does not answer is no reason to fail.
function ask(control, to, callback) {
  post(control, 'reach', { to }, (status, body) => {
    let failure;
    try {
      if (status === 502) failure = JSON.parse(body);
    } catch {
      // The connection itself will tell.
    }
    control.unref();
    callback(failure);
  });
}

// announce tells the proxy where a connection goes. A proxy that refuses it, as
// the connection has a route already, would send what the program writes
// elsewhere, so the connection is broken off.
function announce(control, socket, to) {
  post(control, 'route', { port: socket.localPort, to }, (status) => {
    control.end();
    if (status !== 0 && status !== 204) socket.destroy(new Error(`unwire: the proxy refuses the route to ${to} (status ${status})`));
  });
}

// failureOf is the error that Node would have made.
function failureOf(failure, host, port) {
  const { code, syscall, address } = failure;
  const where = syscall === 'connect' ? `${address || host}:${port}` : host;
  const err = new Error(`${syscall} ${code} ${where}`);
  const errno = os.constants.errno[code];
  err.errno = errno === undefined ? -3008 : -errno; // ENOTFOUND is libuv's own
  err.code = code;
  err.syscall = syscall;
  if (syscall === 'connect') Object.assign(err, { address: address || host, port });
  else err.hostname = host;
  return err;
}

function isProxy(host, port) {
  const local = host === proxyHost || host === 'localhost' || host === '::1' || /^127\./.test(host);
  return local && (port === proxyPort || port === redirectPort);
}

if (!token) {
  mark('no-token'); // without it nothing can be redirected
} else if (!connect.unwire) {
  const hooked = function (...args) {
    const list = Array.isArray(args[0]) ? args[0] : args; // net.connect hands over one normalized list
    const first = list[0];
    const callback = list.slice(1).reverse().find((a) => typeof a === 'function');
    let options;
    if (first !== null && typeof first === 'object') options = first;
    else if (Number(first) >= 0 && first !== '' && first !== null) options = { port: first, host: typeof list[1] === 'string' ? list[1] : undefined };
    if (!options || options.path || options.port === undefined) return connect.apply(this, args);
    const host = options.host || 'localhost';
    const port = Number(options.port);
    if (isProxy(host, port)) return connect.apply(this, args);
    const to = host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
    const control = openControl(() => {});
    this.prependOnceListener('connect', () => announce(control, this, to));
    this.once('close', () => { if (this.pending) control.destroy(); });
    const redirected = { ...options, port: redirectPort, family: 4, autoSelectFamily: false };
    for (const name of ['localAddress', 'localPort', 'hints']) delete redirected[name];
    // Node looks names up while it waits, so the question is asked as a lookup:
    // of a name always, as an address would not be looked up.
    redirected.host = net.isIP(host) ? 'address.invalid' : host;
    redirected.lookup = (name, o, answer) => {
      if (net.isIP(host)) this._host = null; // what TLS over this socket takes for the server's name
      ask(control, to, (failure) => {
        if (failure) answer(failureOf(failure, host, port));
        else if (o.all) answer(null, [{ address: redirectHost, family: 4 }]);
        else answer(null, redirectHost, 4);
      });
    };
    return connect.call(this, redirected, ...(callback ? [callback] : []));
  };
  hooked.unwire = true;
  net.Socket.prototype.connect = hooked;
  mark('loaded'); // Node took its options
}
