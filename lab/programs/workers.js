// Four workers with buffers, JSON, compression and hashes; their results go back to the first thread as transfers.
const { Worker, isMainThread, parentPort, workerData } = require("worker_threads");
const { createHash } = require("crypto");
const zlib = require("zlib");

if (isMainThread) {
  const rounds = Number(process.argv[2]);
  const found = [];
  for (let n = 0; n < 4; ++n) {
    const worker = new Worker(__filename, { workerData: { n, rounds } });
    worker.on("message", (bytes) => { found[n] = createHash("sha256").update(bytes).digest("hex"); });
    worker.on("error", (error) => { throw error; });
  }
  process.on("exit", () => {
    if (found.filter(Boolean).length !== 4) process.exitCode = 1;
    console.log(found.join("\n"));
  });
} else {
  const { n, rounds } = workerData;
  const hash = createHash("sha256");
  for (let turn = 0; turn < rounds; ++turn) {
    const rows = Array.from({ length: 500 }, (_, i) => ({ i, turn, text: "x".repeat((i * 7 + n) % 300) }));
    const text = Buffer.from(JSON.stringify(rows));
    const packed = zlib.deflateSync(text, { level: 1 + (turn % 9) });
    const back = zlib.inflateSync(packed);
    if (!back.equals(text)) throw new Error("another text came back");
    const loose = Array.from({ length: 50 }, (_, i) => Buffer.alloc(1000 * i + 1, i));
    hash.update(packed).update(Buffer.concat(loose));
  }
  const result = new Uint8Array(hash.digest());
  parentPort.postMessage(result, [result.buffer]);
}
