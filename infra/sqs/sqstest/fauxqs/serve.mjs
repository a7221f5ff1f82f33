// Serves an SQS of this process's own on a free port of the loopback, prints the
// port, and ends with its standard input: it never outlives the tests.
import { buildApp } from "fauxqs";

process.stdin.on("end", () => process.exit(0)).resume();
const app = buildApp({ logger: false });
await app.listen({ port: 0, host: "127.0.0.1" });
console.log(app.server.address().port);
