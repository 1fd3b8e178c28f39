// What the store needs of a database engine: statements with parameters, and transactions. The SQL is the same for both engines but
// for the few words in `Dialect`.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "support/status.h"

namespace locution::records {

using Value = std::variant<std::monostate, int64_t, double, std::string>;
using Row = std::vector<Value>;
/// What a column of text or whole numbers holds; empty or -1 where a damaged database has something else in it.
std::string textIn(const Value& value);
int64_t numberIn(const Value& value);

struct Dialect {
  const char* text;       ///< type of a text that compares byte by byte
  const char* clustered;  ///< after a table whose rows lie in the order of its key
  const char* now;        ///< seconds since 1970, with fractions, by the clock that all users of the database share
};

class Database {
 public:
  enum class Begin { Read, Write };
  virtual ~Database() = default;
  virtual const Dialect& dialect() const = 0;
  /// The file, or the server's URI without its password.
  virtual const std::string& place() const = 0;
  virtual bool readOnly() const { return false; }

  /// Parameters are $1, $2 ... `visit` gets each row; it may not use the database.
  virtual Status query(const std::string& sql, std::span<const Value> parameters,
                       const std::function<void(Row& row)>& visit) = 0;
  /// A statement without rows; returns how many rows of tables it changed.
  virtual Result<int64_t> run(const std::string& sql, std::span<const Value> parameters = {}) = 0;
  /// The same statement for many sets of parameters, inside a transaction; returns the number of rows changed by all.
  virtual Result<int64_t> runMany(const std::string& sql, std::span<const Row> parameters) = 0;
  /// Read: all statements up to the end see one state. Write: waits until this process may write, so that it never fails for a lock later.
  virtual Status begin(Begin kind) = 0;
  virtual Status commit() = 0;
  virtual void rollback() = 0;
  /// Whether our tables are there. Errors: it holds something that isn't ours, or is damaged.
  virtual Result<bool> hasTables() = 0;
  /// Before tables are made, inside a transaction: keeps others from making them too, and marks the place as ours.
  virtual Status reserve() = 0;
  /// What the engine itself can say about damage.
  virtual Status verify() = 0;

  Result<std::optional<Value>> one(const std::string& sql, std::span<const Value> parameters = {});
};

/// Rolls back what wasn't committed.
class Transaction {
 public:
  static Result<Transaction> begin(Database& database, Database::Begin kind);
  Transaction(Transaction&& other) noexcept : database_(std::exchange(other.database_, nullptr)) {}
  Transaction& operator=(Transaction&&) = delete;
  ~Transaction();
  Status commit();

 private:
  explicit Transaction(Database& database) : database_(&database) {}
  Database* database_;
};

/// Opens; `create` makes a file that isn't there. The schema is the caller's to look at.
Result<std::unique_ptr<Database>> openSqlite(const std::string& path, bool create, bool readOnly);
Result<std::unique_ptr<Database>> openPostgres(const std::string& uri);

/// Makes the tables where there are none and `create` says so; errors: tables of a newer version, or none.
Status prepareSchema(Database& database, bool create);

}  // namespace locution::records
