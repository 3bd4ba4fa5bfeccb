// Preloaded into Node programs by unwire: every TCP connection goes to the
// recording proxy's redirect listener, which is told by the number of its local
// port where it was to go. Connections to the proxy itself are left alone, so a
// client that speaks to the proxy by itself is not recorded twice.
'use strict';
const net = require('node:net');
const [proxyHost, proxyPort, redirectHost, redirectPort] = JSON.parse(process.env.UNWIRE_HOOK || '[]');
const connect = net.Socket.prototype.connect;

// announce tells the proxy the way of one connection, on a connection of its own
// that does not keep the process alive.
function announce(port, to) {
  const body = JSON.stringify({ port, to });
  const control = new net.Socket();
  control.on('error', () => {});
  connect.call(control, { host: proxyHost, port: proxyPort }, () => {
    control.end(`POST /.well-known/unwire/route HTTP/1.1\r\nHost: unwire\r\nConnection: close\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
  });
  control.resume();
  control.unref();
}

function isProxy(host, port) {
  const local = host === proxyHost || host === 'localhost' || host === '::1' || /^127\./.test(host);
  return local && (port === proxyPort || port === redirectPort);
}

if (redirectPort && !connect.unwire) {
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
    this.prependOnceListener('connect', () => announce(this.localPort, to));
    const redirected = { ...options, host: redirectHost, port: redirectPort, family: 4 };
    for (const name of ['localAddress', 'localPort', 'lookup', 'hints', 'autoSelectFamily']) delete redirected[name];
    if (!net.isIP(host)) this._host = host; // what TLS over this socket takes for the server's name
    return connect.call(this, redirected, ...(callback ? [callback] : []));
  };
  hooked.unwire = true;
  net.Socket.prototype.connect = hooked;
}
