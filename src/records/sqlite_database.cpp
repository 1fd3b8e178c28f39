// SQLite. Write-ahead logging: a commit is one append, readers and a writer don't wait for each other, and what a killed process left
// behind is sorted out by the next one that opens the file.
#include <sqlite3.h>

#include <chrono>
#include <filesystem>
#include <thread>
#include <unordered_map>

#include "records/database.h"

namespace locution::records {
namespace {

// "LRec": how a file of ours is told from other SQLite files.
constexpr int64_t kApplicationId = 0x4c526563;
// A process waits this long for another one that writes; importing a large file takes seconds.
constexpr int kBusyMs = 120000;

constexpr Dialect kDialect = {"TEXT", "WITHOUT ROWID", "((julianday('now') - 2440587.5) * 86400.0)"};

class SqliteDatabase : public Database {
 public:
  SqliteDatabase(std::string path, bool readOnly) : path_(std::move(path)), readOnly_(readOnly) {}
  ~SqliteDatabase() override { close(); }

  Status open(bool create) {
    std::error_code error;
    if (!create && !std::filesystem::exists(path_, error)) return Status::error("no such file");
    if (std::filesystem::is_directory(path_, error)) return Status::error("is a folder");
    // A reader may write too, if it can: who closes last takes the log away. SQLite itself falls back to reading.
    LOCUTION_RETURN_IF_ERROR(openFile(path_, SQLITE_OPEN_READWRITE | (create ? SQLITE_OPEN_CREATE : 0)));
    if (!readOnly_) return setUp();
    LOCUTION_RETURN_IF_ERROR(run("PRAGMA query_only = ON", {}).status());
    // A reader of a log needs shared memory beside the file. Where that can't be, and no log is left, the file alone is the database.
    if (one("SELECT count(*) FROM sqlite_master").isOk()) return Status::ok();
    if (code_ == SQLITE_CANTOPEN && !std::filesystem::exists(path_ + "-wal", error)) {
      close();
      return openFile("file:" + escaped(path_) + "?immutable=1", SQLITE_OPEN_READONLY | SQLITE_OPEN_URI);
    }
    return Status::ok();  // hasTables() says what is wrong
  }

  const Dialect& dialect() const override { return kDialect; }
  const std::string& place() const override { return path_; }
  bool readOnly() const override { return readOnly_; }

  Status query(const std::string& sql, std::span<const Value> parameters,
               const std::function<void(Row& row)>& visit) override {
    LOCUTION_ASSIGN_OR_RETURN(sqlite3_stmt * statement, prepared(sql));
    Row row(static_cast<size_t>(sqlite3_column_count(statement)));
    LOCUTION_RETURN_IF_ERROR(bind(statement, parameters));
    int code;
    while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
      for (size_t i = 0; i < row.size(); ++i) row[i] = column(statement, static_cast<int>(i));
      visit(row);
    }
    return finished(statement, code);
  }

  Result<int64_t> run(const std::string& sql, std::span<const Value> parameters) override {
    LOCUTION_RETURN_IF_ERROR(query(sql, parameters, [](Row&) {}));
    return static_cast<int64_t>(sqlite3_changes64(db_));
  }

  Result<int64_t> runMany(const std::string& sql, std::span<const Row> parameters) override {
    int64_t changed = 0;
    for (const Row& row : parameters) {
      LOCUTION_ASSIGN_OR_RETURN(int64_t here, run(sql, row));
      changed += here;
    }
    return changed;
  }

  Status begin(Begin kind) override { return run(kind == Begin::Write ? "BEGIN IMMEDIATE" : "BEGIN", {}).status(); }
  Status commit() override { return run("COMMIT", {}).status(); }
  void rollback() override {
    if (!sqlite3_get_autocommit(db_)) (void)run("ROLLBACK", {});
  }

  Result<bool> hasTables() override {
    LOCUTION_ASSIGN_OR_RETURN(auto tables, one("SELECT count(*) FROM sqlite_master"));
    if (!tables || *tables == Value(int64_t{0})) return false;
    LOCUTION_ASSIGN_OR_RETURN(auto id, one("PRAGMA application_id"));
    if (id != Value(kApplicationId)) return Status::error("is a SQLite database, but not one of records");
    return true;
  }

  Status reserve() override { return run("PRAGMA application_id = " + std::to_string(kApplicationId), {}).status(); }

  Status verify() override {
    std::string found;
    LOCUTION_RETURN_IF_ERROR(query("PRAGMA integrity_check(1)", {}, [&](Row& row) {
      if (const auto* text = std::get_if<std::string>(&row.at(0)); text && found.empty()) found = *text;
    }));
    if (found == "ok") return Status::ok();
    return Status::error("is damaged: " + found);
  }

 private:
  void close() {
    for (auto& [sql, statement] : statements_) sqlite3_finalize(statement);
    statements_.clear();
    sqlite3_close(std::exchange(db_, nullptr));
  }

  Status openFile(const std::string& name, int flags) {
    code_ = sqlite3_open_v2(name.c_str(), &db_, flags | SQLITE_OPEN_EXRESCODE, nullptr);
    if (code_ != SQLITE_OK) return failure();
    sqlite3_busy_timeout(db_, kBusyMs);
    sqlite3_exec(db_, "PRAGMA foreign_keys = ON; PRAGMA cache_size = -65536", nullptr, nullptr, nullptr);
    return Status::ok();
  }

  /// Before anything is written, a file must be ours or empty.
  Status setUp() {
    LOCUTION_RETURN_IF_ERROR(hasTables().status());
    LOCUTION_RETURN_IF_ERROR(run("PRAGMA page_size = 8192", {}).status());
    // The change of mode needs the file for itself, and doesn't wait for it.
    auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(kBusyMs);
    while (true) {
      auto mode = one("PRAGMA journal_mode = WAL");
      if (mode.isOk() && *mode == Value(std::string("wal"))) break;
      if (mode.isOk()) return Status::error("its file system can't hold a write-ahead log");
      if ((code_ & 0xff) != SQLITE_BUSY || std::chrono::steady_clock::now() > end) return mode.status();
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    // A commit is safe from kills without waiting for the disk; a power cut takes back the last ones, whole and in order.
    LOCUTION_RETURN_IF_ERROR(run("PRAGMA synchronous = NORMAL", {}).status());
    return run("PRAGMA journal_size_limit = 67108864", {}).status();
  }

  /// For a URI.
  static std::string escaped(const std::string& path) {
    std::string out;
    for (char c : path) {
      if (c == '%' || c == '?' || c == '#') {
        constexpr char kDigits[] = "0123456789abcdef";
        out += {'%', kDigits[c >> 4], kDigits[c & 15]};
      } else {
        out += c;
      }
    }
    return out;
  }

  Result<sqlite3_stmt*> prepared(const std::string& sql) {
    auto found = statements_.find(sql);
    if (found != statements_.end()) return found->second;
    sqlite3_stmt* statement = nullptr;
    code_ = sqlite3_prepare_v3(db_, sql.data(), static_cast<int>(sql.size()), SQLITE_PREPARE_PERSISTENT, &statement,
                               nullptr);
    if (code_ != SQLITE_OK) return failure();
    LOCUTION_CHECK(statement) << "no statement in " << sql;
    return statements_.emplace(sql, statement).first->second;
  }

  Status bind(sqlite3_stmt* statement, std::span<const Value> parameters) {
    LOCUTION_CHECK(sqlite3_bind_parameter_count(statement) == static_cast<int>(parameters.size()))
        << sqlite3_sql(statement);
    for (size_t i = 0; i < parameters.size(); ++i) {
      int at = sqlite3_bind_parameter_index(statement, ("$" + std::to_string(i + 1)).c_str());
      const Value& value = parameters[i];
      if (const auto* number = std::get_if<int64_t>(&value)) {
        code_ = sqlite3_bind_int64(statement, at, *number);
      } else if (const auto* real = std::get_if<double>(&value)) {
        code_ = sqlite3_bind_double(statement, at, *real);
      } else if (const auto* text = std::get_if<std::string>(&value)) {
        // The caller's text outlives the step.
        code_ = sqlite3_bind_text64(statement, at, text->data(), text->size(), SQLITE_STATIC, SQLITE_UTF8);
      } else {
        code_ = sqlite3_bind_null(statement, at);
      }
      if (code_ != SQLITE_OK) return failure();
    }
    return Status::ok();
  }

  static Value column(sqlite3_stmt* statement, int i) {
    switch (sqlite3_column_type(statement, i)) {
      case SQLITE_INTEGER:
        return static_cast<int64_t>(sqlite3_column_int64(statement, i));
      case SQLITE_FLOAT:
        return sqlite3_column_double(statement, i);
      case SQLITE_NULL:
        return std::monostate();
      default: {
        // Blobs, which we never write, come as their bytes.
        const auto* bytes = static_cast<const char*>(sqlite3_column_blob(statement, i));
        return std::string(bytes ? bytes : "", static_cast<size_t>(sqlite3_column_bytes(statement, i)));
      }
    }
  }

  Status finished(sqlite3_stmt* statement, int code) {
    code_ = code;
    Status status = code == SQLITE_DONE ? Status::ok() : failure();
    sqlite3_reset(statement);
    sqlite3_clear_bindings(statement);
    return status;
  }

  Status failure() const {
    std::string said = db_ ? sqlite3_errmsg(db_) : sqlite3_errstr(code_);
    switch (code_ & 0xff) {
      case SQLITE_NOTADB:
        return Status::error("is not a database of records");
      case SQLITE_CORRUPT:
        return Status::error("is damaged: " + said);
      case SQLITE_BUSY:
        return Status::error("another process has been writing for too long");
      case SQLITE_FULL:
        return Status::error("the disk is full");
      case SQLITE_READONLY:
        return Status::error("can't be written: " + said);
      case SQLITE_CANTOPEN:
        return Status::error("can't be opened: " + said);
      default:
        return Status::error(said);
    }
  }

  std::string path_;
  bool readOnly_;
  sqlite3* db_ = nullptr;
  int code_ = SQLITE_OK;
  std::unordered_map<std::string, sqlite3_stmt*> statements_;
};

}  // namespace

Result<std::unique_ptr<Database>> openSqlite(const std::string& path, bool create, bool readOnly) {
  auto database = std::make_unique<SqliteDatabase>(path, readOnly);
  LOCUTION_RETURN_IF_ERROR(database->open(create));
  return std::unique_ptr<Database>(std::move(database));
}

}  // namespace locution::records
