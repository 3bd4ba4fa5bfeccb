// Prints what each SQL statement of the arguments gives, as JSON, a line each.
import { DuckDBInstance } from '@duckdb/node-api';

const db = await (await DuckDBInstance.create(':memory:')).connect();
for (const sql of process.argv.slice(2)) {
  const result = await db.runAndReadAll(sql);
  console.log(JSON.stringify(result.getRowsJson()));
}
