// Serves an SQS of this process's own on the loopback, on the port that is its
// argument or a free one, prints the port, and ends with its standard input: it never outlives the tests.
import { buildApp } from "fauxqs";

process.stdin.on("end", () => process.exit(0)).resume();
const app = buildApp({ logger: false });
await app.listen({ port: Number(process.argv[2] ?? 0), host: "127.0.0.1" });
console.log(app.server.address().port);
