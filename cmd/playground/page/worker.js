// The engine runs here, so that the page stays responsive: it loads the WebAssembly file, and runs requests.
"use strict";
importScripts("wasm_exec.js");

const ready = new Promise((resolve, reject) => {
  self.tenureReady = resolve;
  (async () => {
    const response = await fetch("engine.wasm.gz");
    if (!response.ok) throw new Error("engine.wasm.gz: " + response.status);
    // Some hosts say that the file is compressed, and browsers decompress it then.
    let bytes = new Uint8Array(await response.arrayBuffer());
    if (bytes[0] === 0x1f && bytes[1] === 0x8b) {
      const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
      bytes = new Uint8Array(await new Response(stream).arrayBuffer());
    }
    const go = new Go();
    const {instance} = await WebAssembly.instantiate(bytes, go.importObject);
    go.run(instance).then(() => reject(new Error("the engine ended")));
  })().catch(reject);
});

self.onmessage = async event => {
  const {id, request} = event.data;
  try {
    await ready;
    const start = performance.now();
    const response = self.tenureRun(request);
    self.postMessage({id, response, time: performance.now() - start});
  } catch (err) {
    self.postMessage({id, error: String(err)});
  }
};
ready.then(() => self.postMessage({ready: true}), err => self.postMessage({error: String(err)}));
