// Tasks of a collection. One statement claims, so that of two workers one has it, whatever happens between; what a task gave is stored
// in the transaction that marks it done, so that a killed worker leaves a task either done with its records or to be done again.
#include "records/columns.h"
#include "records/database.h"
#include "records/store.h"

namespace locution::records {

Result<Claim> Store::claim(const std::string& task, const std::string& worker, double leaseSeconds) {
  std::string now = database_->dialect().now;
  Value parameters[] = {task, worker, leaseSeconds};
  auto changed = database_->run("INSERT INTO tasks (task, worker, until, done) VALUES ($1, $2, " + now +
                                    " + CAST($3 AS DOUBLE PRECISION), 0) ON CONFLICT (task) DO UPDATE SET worker = "
                                    "excluded.worker, until = excluded.until WHERE tasks.done = 0 AND (tasks.until < " +
                                    now + " OR tasks.worker = excluded.worker)",
                                parameters);
  if (!changed.isOk()) return changed.status().withContext(place());
  if (*changed == 1) return Claim::Mine;
  auto done = database_->one("SELECT done FROM tasks WHERE task = $1", {parameters, 1});
  if (!done.isOk()) return done.status().withContext(place());
  // Gone meanwhile: its worker has just given it back.
  return *done && **done == Value(int64_t{1}) ? Claim::Done : Claim::Busy;
}

Result<bool> Store::finish(const std::string& task, const std::string& worker, std::span<const Record> records) {
  LOCUTION_RETURN_IF_ERROR(check(records));
  std::vector<Row> rows = rowsOf(records);
  auto finished = [&]() -> Result<bool> {
    LOCUTION_ASSIGN_OR_RETURN(Transaction transaction, Transaction::begin(*database_, Database::Begin::Write));
    // Done by this worker already: it is told again, as after a connection that broke at the commit.
    Value parameters[] = {task, worker};
    LOCUTION_ASSIGN_OR_RETURN(int64_t mine,
                              database_->run("UPDATE tasks SET done = 1 WHERE task = $1 AND worker = $2", parameters));
    if (mine == 0) return false;
    LOCUTION_RETURN_IF_ERROR(database_->runMany(insertRecord(), rows).status());
    LOCUTION_RETURN_IF_ERROR(transaction.commit());
    return true;
  }();
  return finished.isOk() ? finished : finished.status().withContext(place());
}

Status Store::release(const std::string& task, const std::string& worker) {
  Value parameters[] = {task, worker};
  return database_->run("DELETE FROM tasks WHERE task = $1 AND worker = $2 AND done = 0", parameters)
      .status()
      .withContext(place());
}

Result<std::vector<std::string>> Store::doneTasks(const std::string& prefix) {
  std::vector<std::string> found;
  // The last character there is, in UTF-8: behind every name that goes on from the prefix.
  Value parameters[] = {prefix, prefix + "\xf4\x8f\xbf\xbf"};
  Status status = database_->query("SELECT task FROM tasks WHERE done = 1 AND task >= $1 AND task < $2 ORDER BY task",
                                   parameters, [&](Row& row) { found.push_back(textIn(row[0])); });
  if (!status.isOk()) return status.withContext(place());
  return found;
}

}  // namespace locution::records
