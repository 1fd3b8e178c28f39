#include "records/store.h"

#include "records/columns.h"
#include "records/condition.h"
#include "records/database.h"
#include "records/utf8.h"
#include "support/hash.h"
#include "support/strings.h"

namespace locution::records {
namespace {

struct TextTable {
  const char* field;
  const char* table;
};
constexpr TextTable kTextTables[] = {
#define TEXT_KIND(name, field, table) {field, table},
#include "records/texts.inc"
#undef TEXT_KIND
};
const TextTable& tableOf(TextKind kind) { return kTextTables[static_cast<size_t>(kind)]; }

// Rows that are held in memory at a time.
constexpr int64_t kPage = 2000;

}  // namespace

Store::Store(std::unique_ptr<Database> database) : database_(std::move(database)) {}
Store::~Store() = default;

bool Store::isServer(const std::string& where) {
  return where.starts_with("postgresql://") || where.starts_with("postgres://");
}

Result<std::unique_ptr<Store>> Store::open(const std::string& where, Open mode) {
  auto database = isServer(where) ? openPostgres(where) : openSqlite(where, mode == Open::Create, mode == Open::Read);
  // What a server's URI says is named by openPostgres, which knows which part of it is secret.
  if (!database.isOk()) return isServer(where) ? database.status() : database.status().withContext(where);
  std::unique_ptr<Store> store(new Store(std::move(*database)));
  LOCUTION_RETURN_IF_ERROR(prepareSchema(*store->database_, mode != Open::Read).withContext(store->place()));
  return store;
}

const std::string& Store::place() const { return database_->place(); }

Result<std::string> Store::put(TextKind kind, const std::string& text) {
  std::string key = keyOf(text);
  LOCUTION_RETURN_IF_ERROR(putTo(kind, key, text).status());
  return key;
}

Result<bool> Store::putTo(TextKind kind, const std::string& key, const std::string& text) {
  if (!isPlainUtf8(text)) return Status::error(std::string("a ") + tableOf(kind).field + "'s text is not in UTF-8");
  Value row[] = {key, text};
  auto changed = database_->run(
      std::string("INSERT INTO ") + tableOf(kind).table + " (key, text) VALUES ($1, $2) ON CONFLICT DO NOTHING", row);
  if (!changed.isOk()) return changed.status().withContext(place());
  known_.emplace(kind, key);
  return *changed == 1;
}

Result<std::optional<std::string>> Store::text(TextKind kind, const std::string& key) {
  Value parameters[] = {key};
  auto found = database_->one(std::string("SELECT text FROM ") + tableOf(kind).table + " WHERE key = $1", parameters);
  if (!found.isOk()) return found.status().withContext(place());
  if (!*found) return std::optional<std::string>();
  auto* text = std::get_if<std::string>(&**found);
  if (!text) return Status::error(place() + ": is damaged: the text " + key + " can't be read");
  return std::optional<std::string>(std::move(*text));
}

Status Store::forEachText(TextKind kind,
                          const std::function<Status(const std::string& key, const std::string& text)>& visit) {
  std::string last;
  while (true) {
    Value parameters[] = {last, int64_t{kPage / 10}};
    std::vector<Row> rows;
    LOCUTION_RETURN_IF_ERROR(database_
                                 ->query(std::string("SELECT key, text FROM ") + tableOf(kind).table +
                                             " WHERE key > $1 ORDER BY key LIMIT $2",
                                         parameters, [&](Row& row) { rows.push_back(row); })
                                 .withContext(place()));
    if (rows.empty()) return Status::ok();
    for (const Row& row : rows) {
      last = textIn(row[0]);
      if (last.empty()) return Status::error(place() + ": is damaged: a text's key can't be read");
      LOCUTION_RETURN_IF_ERROR(visit(last, textIn(row[1])));
    }
  }
}

Result<bool> Store::add(const Record& record) {
  LOCUTION_ASSIGN_OR_RETURN(int64_t added, addAll({&record, 1}));
  return added == 1;
}

Result<int64_t> Store::addAll(std::span<const Record> records) {
  LOCUTION_RETURN_IF_ERROR(check(records));
  std::vector<Row> rows = rowsOf(records);
  auto added = [&]() -> Result<int64_t> {
    LOCUTION_ASSIGN_OR_RETURN(Transaction transaction, Transaction::begin(*database_, Database::Begin::Write));
    LOCUTION_ASSIGN_OR_RETURN(int64_t count, database_->runMany(insertRecord(), rows));
    LOCUTION_RETURN_IF_ERROR(transaction.commit());
    return count;
  }();
  if (!added.isOk()) return added.status().withContext(place());
  return added;
}

Status Store::check(std::span<const Record> records) {
  for (const Record& record : records) {
    LOCUTION_RETURN_IF_ERROR(record.check());
    LOCUTION_RETURN_IF_ERROR(known(TextKind::Workload, record.workload));
    LOCUTION_RETURN_IF_ERROR(known(TextKind::Target, record.target));
    LOCUTION_RETURN_IF_ERROR(known(TextKind::Machine, record.machine));
    if (!record.incumbent.empty()) LOCUTION_RETURN_IF_ERROR(known(TextKind::Incumbent, record.incumbent));
  }
  return Status::ok();
}

Status Store::known(TextKind kind, const std::string& key) {
  // Texts never go, so what was there is there.
  if (known_.contains({kind, key})) return Status::ok();
  LOCUTION_ASSIGN_OR_RETURN(auto found, text(kind, key));
  if (!found)
    return Status::error(place() + ": holds no " + tableOf(kind).field + " " + key +
                         ", which a record names: put its text first");
  known_.emplace(kind, key);
  return Status::ok();
}

Status Store::forEach(const Filter& filter, const std::function<Status(const Record& record, bool stale)>& visit) {
  return scan(filter, [&](const Record& record, bool stale, const std::string&) { return visit(record, stale); });
}

Status Store::scan(const Filter& filter, const Visitor& visit) {
  Record last;
  std::string lastId;
  while (true) {
    Condition condition(filter);
    if (!lastId.empty())
      condition.sql += " AND (workload, target, id) > (" + condition.parameter(last.workload) + ", " +
                       condition.parameter(last.target) + ", " + condition.parameter(lastId) + ")";
    std::string sql = "SELECT " + recordColumns() + ", stale, id FROM records WHERE " + condition.sql +
                      " ORDER BY workload, target, id LIMIT " + std::to_string(kPage);
    std::vector<Row> rows;
    LOCUTION_RETURN_IF_ERROR(
        database_->query(sql, condition.parameters, [&](Row& row) { rows.push_back(row); }).withContext(place()));
    for (const Row& row : rows) {
      auto record = recordOf(row);
      if (!record.isOk()) return record.status().withContext(place());
      last = std::move(*record);
      lastId = textIn(row.back());
      if (lastId.empty()) return Status::error(place() + ": is damaged: a record's id can't be read");
      LOCUTION_RETURN_IF_ERROR(visit(last, row[row.size() - 2] != Value(int64_t{0}), lastId));
    }
    if (rows.size() < kPage) return Status::ok();
  }
}

Result<std::vector<Record>> Store::all(const Filter& filter) {
  std::vector<Record> found;
  LOCUTION_RETURN_IF_ERROR(forEach(filter, [&](const Record& record, bool) {
    found.push_back(record);
    return Status::ok();
  }));
  return found;
}

Result<int64_t> Store::count(const Filter& filter) {
  Condition condition(filter);
  auto found = database_->one("SELECT count(*) FROM records WHERE " + condition.sql, condition.parameters);
  if (!found.isOk()) return found.status().withContext(place());
  return *found ? numberIn(**found) : 0;
}

Result<std::vector<Count>> Store::counts() {
  std::vector<Count> found;
  Status status = database_->query(
      "SELECT workload, target, outcome, stale, count(*) FROM records"
      " GROUP BY workload, target, outcome, stale ORDER BY workload, target, outcome, stale",
      {}, [&](Row& row) {
        Count& count = found.emplace_back();
        count.workload = textIn(row[0]);
        count.target = textIn(row[1]);
        count.outcome = outcomeOf(textIn(row[2])).value_or(Outcome::Crash);
        count.stale = row[3] != Value(int64_t{0});
        count.records = numberIn(row[4]);
      });
  if (!status.isOk()) return status.withContext(place());
  return found;
}

Result<int64_t> Store::verify() {
  LOCUTION_RETURN_IF_ERROR(database_->verify().withContext(place()));
  for (size_t kind = 0; kind < std::size(kTextTables); ++kind)
    LOCUTION_RETURN_IF_ERROR(
        forEachText(static_cast<TextKind>(kind), [&](const std::string& key, const std::string& text) {
          if (keyOf(text) == key) return Status::ok();
          return Status::error(place() + ": is damaged: the " + kTextTables[kind].field + " " + key +
                               " is not what its key says");
        }));
  int64_t records = 0;
  LOCUTION_RETURN_IF_ERROR(
      scan({.stale = Filter::Stale::Include}, [&](const Record& record, bool, const std::string& id) {
        ++records;
        if (record.id() == id) return Status::ok();
        return Status::error(place() + ": is damaged: the record " + id + " is not what its id says");
      }));
  return records;
}

}  // namespace locution::records
