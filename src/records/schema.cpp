// The tables, in the words that SQLite and PostgreSQL share. docs/decisions/records.md says why they are so.
#include <string>

#include "records/database.h"
#include "support/strings.h"

namespace locution::records {
namespace {

// Raised when a database of before can't be used as it is.
constexpr int64_t kSchemaVersion = 1;

constexpr const char* kSchema = R"(
CREATE TABLE meta (name $TEXT PRIMARY KEY, value BIGINT NOT NULL);
CREATE TABLE workloads (key $TEXT PRIMARY KEY, text $TEXT NOT NULL);
CREATE TABLE targets (key $TEXT PRIMARY KEY, text $TEXT NOT NULL);
CREATE TABLE machines (key $TEXT PRIMARY KEY, text $TEXT NOT NULL);
CREATE TABLE incumbents (key $TEXT PRIMARY KEY, text $TEXT NOT NULL);
CREATE TABLE records (
  id $TEXT NOT NULL,
  workload $TEXT NOT NULL REFERENCES workloads (key),
  target $TEXT NOT NULL REFERENCES targets (key),
  machine $TEXT NOT NULL REFERENCES machines (key),
  sentence $TEXT NOT NULL,
  proposer $TEXT NOT NULL,
  seed BIGINT NOT NULL,
  model $TEXT NOT NULL,
  outcome $TEXT NOT NULL,
  samples $TEXT NOT NULL,
  incumbent $TEXT REFERENCES incumbents (key),
  ratio DOUBLE PRECISION,
  spread DOUBLE PRECISION,
  compiler $TEXT NOT NULL,
  code $TEXT NOT NULL,
  grammar BIGINT NOT NULL,
  vocabulary_count BIGINT NOT NULL,
  vocabulary $TEXT NOT NULL,
  time BIGINT NOT NULL,
  seconds DOUBLE PRECISION,
  stale BIGINT NOT NULL,
  confirmed $TEXT NOT NULL,
  PRIMARY KEY (workload, target, id)
) $CLUSTERED;
CREATE TABLE tasks (
  task $TEXT PRIMARY KEY,
  worker $TEXT NOT NULL,
  until DOUBLE PRECISION NOT NULL,
  done BIGINT NOT NULL
) $CLUSTERED)";

std::string inDialect(std::string text, const Dialect& dialect) {
  auto replace = [&](const std::string& word, const std::string& by) {
    for (size_t at = 0; (at = text.find(word, at)) != std::string::npos; at += by.size())
      text.replace(at, word.size(), by);
  };
  replace("$TEXT", dialect.text);
  replace("$CLUSTERED", dialect.clustered);
  return text;
}

Status checkVersion(Database& database) {
  LOCUTION_ASSIGN_OR_RETURN(auto version, database.one("SELECT value FROM meta WHERE name = 'schema'"));
  const int64_t* number = version ? std::get_if<int64_t>(&*version) : nullptr;
  if (!number) return Status::error("is damaged: its tables don't say which version they have");
  if (*number == kSchemaVersion) return Status::ok();
  return Status::error("its tables have version " + std::to_string(*number) + ", this program knows version " +
                       std::to_string(kSchemaVersion));
}

}  // namespace

Status prepareSchema(Database& database, bool create) {
  LOCUTION_ASSIGN_OR_RETURN(bool there, database.hasTables());
  if (there) return checkVersion(database);
  if (!create) return Status::error("holds no records yet");
  LOCUTION_ASSIGN_OR_RETURN(Transaction transaction, Transaction::begin(database, Database::Begin::Write));
  LOCUTION_RETURN_IF_ERROR(database.reserve());
  // Another process may have been first.
  LOCUTION_ASSIGN_OR_RETURN(there, database.hasTables());
  if (!there) {
    for (const std::string& statement : splitText(inDialect(kSchema, database.dialect()), ';'))
      LOCUTION_RETURN_IF_ERROR(database.run(statement).status());
    Value version[] = {std::string("schema"), kSchemaVersion};
    LOCUTION_RETURN_IF_ERROR(database.run("INSERT INTO meta (name, value) VALUES ($1, $2)", version).status());
  }
  LOCUTION_RETURN_IF_ERROR(transaction.commit());
  return checkVersion(database);
}

}  // namespace locution::records
