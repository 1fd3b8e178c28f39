// PostgreSQL, in the schema "locution" of the database that the URI names. libpq is loaded on first use: a compiler that never asks a
// server should neither need it nor load the 20 libraries it stands on.
#include <dlfcn.h>
#include <libpq-fe.h>

#include <charconv>
#include <unordered_map>

#include "records/columns.h"
#include "records/database.h"
#include "support/strings.h"

namespace locution::records {
namespace {

struct Libpq {
#define LIBPQ(name) decltype(&::name) name = nullptr;
#include "records/libpq.inc"
#undef LIBPQ
};

Result<const Libpq*> libpq() {
  static const Result<Libpq> kLoaded = []() -> Result<Libpq> {
    void* library = dlopen("libpq.so.5", RTLD_NOW | RTLD_LOCAL);
    if (!library) return Status::error(std::string("PostgreSQL needs libpq (Debian's package libpq5): ") + dlerror());
    Libpq found;
    const char* missing = nullptr;
#define LIBPQ(name)                                                           \
  found.name = reinterpret_cast<decltype(found.name)>(dlsym(library, #name)); \
  if (!found.name) missing = #name;
#include "records/libpq.inc"
#undef LIBPQ
    if (missing) return Status::error(std::string("libpq is too old: it has no ") + missing);
    return found;
  }();
  if (!kLoaded.isOk()) return kLoaded.status();
  return &*kLoaded;
}

// Types of columns, by the number that the server's catalogue gives them.
enum : Oid { kInt8 = 20, kInt2 = 21, kInt4 = 23, kFloat8 = 701 };
// Between two schemas that are made at once; any number that others don't use.
constexpr const char* kLock = "5499263";
// Rows sent before their answers are read: enough to hide the way there and back, too few to fill a socket's buffer.
constexpr size_t kInFlight = 256;

constexpr Dialect kDialect = {"TEXT COLLATE \"C\"", "",
                              "CAST(EXTRACT(EPOCH FROM clock_timestamp()) AS DOUBLE PRECISION)"};

/// In one line, as libpq's messages go over several.
std::string oneLine(const std::string& text) {
  std::vector<std::string> lines;
  for (const std::string& line : splitText(text, '\n')) {
    size_t first = line.find_first_not_of(" \t");
    if (first != std::string::npos) lines.push_back(line.substr(first));
  }
  return join(lines, "; ");
}

class PostgresDatabase : public Database {
 public:
  explicit PostgresDatabase(const Libpq& pq) : pq_(pq) {}
  ~PostgresDatabase() override { pq_.PQfinish(connection_); }

  Status open(const std::string& uri) {
    LOCUTION_RETURN_IF_ERROR(nameThePlace(uri));
    // What the URI says wins over what stands before it.
    const char* names[] = {"connect_timeout", "fallback_application_name", "dbname", "client_encoding", nullptr};
    const char* values[] = {"10", "locution", uri.c_str(), "UTF8", nullptr};
    connection_ = pq_.PQconnectdbParams(names, values, 1);
    if (!connection_) return Status::error(place_ + ": not enough memory");
    if (pq_.PQstatus(connection_) != CONNECTION_OK)
      return Status::error(place_ + ": no connection: " + oneLine(pq_.PQerrorMessage(connection_)));
    pq_.PQsetNoticeProcessor(
        connection_, [](void*, const char*) {}, nullptr);
    const char* encoding = pq_.PQparameterStatus(connection_, "server_encoding");
    if (!encoding || std::string(encoding) != "UTF8")
      return Status::error(place_ + ": the database must be in UTF8, not " + (encoding ? encoding : "unknown"));
    // Pages are read in the order of a key. A table that has just been filled has no statistics yet, and the planner would sort all of it
    // for each page.
    return simple("SET search_path TO locution; SET enable_seqscan TO off; SET enable_bitmapscan TO off")
        .withContext(place_);
  }

  const Dialect& dialect() const override { return kDialect; }
  const std::string& place() const override { return place_; }

  Status query(const std::string& sql, std::span<const Value> parameters,
               const std::function<void(Row& row)>& visit) override {
    LOCUTION_ASSIGN_OR_RETURN(Answer answer, execute(sql, parameters));
    const PGresult* result = answer.result.get();
    int fields = pq_.PQnfields(result);
    Row row(static_cast<size_t>(fields));
    for (int i = 0; i < pq_.PQntuples(result); ++i) {
      for (int k = 0; k < fields; ++k) row[static_cast<size_t>(k)] = column(result, i, k);
      visit(row);
    }
    return Status::ok();
  }

  Result<int64_t> run(const std::string& sql, std::span<const Value> parameters) override {
    LOCUTION_ASSIGN_OR_RETURN(Answer answer, execute(sql, parameters));
    return changed(answer.result.get());
  }

  Result<int64_t> runMany(const std::string& sql, std::span<const Row> parameters) override {
    if (parameters.empty()) return int64_t{0};
    LOCUTION_ASSIGN_OR_RETURN(std::string name, prepared(sql, parameters[0].size()));
    int64_t sum = 0;
    for (size_t from = 0; from < parameters.size(); from += kInFlight) {
      auto chunk = parameters.subspan(from, std::min(kInFlight, parameters.size() - from));
      if (!pq_.PQenterPipelineMode(connection_)) return lastError();
      Status status = pipelined(name, chunk, &sum);
      bool left = pq_.PQexitPipelineMode(connection_);
      LOCUTION_RETURN_IF_ERROR(status);
      if (!left) return lastError();
    }
    return sum;
  }

  Status begin(Begin kind) override {
    return simple(kind == Begin::Write ? "BEGIN" : "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
  }
  Status commit() override {
    // A transaction with an error in it answers COMMIT by rolling back, and calls that a success.
    if (pq_.PQtransactionStatus(connection_) == PQTRANS_INERROR) return Status::error("the transaction has failed");
    return simple("COMMIT");
  }
  void rollback() override {
    if (pq_.PQtransactionStatus(connection_) != PQTRANS_IDLE) (void)simple("ROLLBACK");
  }

  Result<bool> hasTables() override {
    LOCUTION_ASSIGN_OR_RETURN(auto tables,
                              one("SELECT count(*) FROM pg_catalog.pg_tables WHERE schemaname = 'locution'"));
    if (!tables || numberIn(*tables) == 0) return false;
    LOCUTION_ASSIGN_OR_RETURN(auto meta,
                              one("SELECT count(*) FROM pg_catalog.pg_tables WHERE schemaname = 'locution' AND"
                                  " tablename IN ('meta', 'records', 'workloads')"));
    if (!meta || numberIn(*meta) != 3)
      return Status::error("its schema \"locution\" holds tables, but not those of records");
    return true;
  }

  Status reserve() override {
    LOCUTION_RETURN_IF_ERROR(simple(std::string("SELECT pg_advisory_xact_lock(") + kLock + ")"));
    return simple("CREATE SCHEMA IF NOT EXISTS locution");
  }

  // The server looks after its own files.
  Status verify() override { return Status::ok(); }

 private:
  struct Clear {
    const Libpq* pq;
    void operator()(PGresult* result) const { pq->PQclear(result); }
  };
  struct Answer {
    std::unique_ptr<PGresult, Clear> result;
  };
  /// Parameters as libpq takes them.
  struct Texts {
    std::vector<std::string> held;
    std::vector<const char*> pointers;
    explicit Texts(std::span<const Value> parameters) : held(parameters.size()), pointers(parameters.size()) {
      for (size_t i = 0; i < parameters.size(); ++i) {
        const Value& value = parameters[i];
        if (const auto* text = std::get_if<std::string>(&value)) {
          pointers[i] = text->c_str();
          continue;
        }
        if (const auto* number = std::get_if<int64_t>(&value)) held[i] = std::to_string(*number);
        if (const auto* real = std::get_if<double>(&value)) held[i] = exactText(*real);
        pointers[i] = std::holds_alternative<std::monostate>(value) ? nullptr : held[i].c_str();
      }
    }
    int count() const { return static_cast<int>(pointers.size()); }
  };

  /// The URI without password; a malformed one is an error, which may not repeat it either.
  Status nameThePlace(const std::string& uri) {
    char* error = nullptr;
    PQconninfoOption* options = pq_.PQconninfoParse(uri.c_str(), &error);
    if (!options) {
      std::string why = error ? oneLine(error) : "";
      pq_.PQfreemem(error);
      if (size_t at = why.find(uri); at != std::string::npos) why.replace(at, uri.size(), "it");
      return Status::error("the PostgreSQL URI can't be read: " + why);
    }
    std::string host, port, name;
    for (const PQconninfoOption* o = options; o->keyword; ++o) {
      if (!o->val) continue;
      std::string keyword = o->keyword;
      if (keyword == "host" || (keyword == "hostaddr" && host.empty())) host = o->val;
      if (keyword == "port") port = o->val;
      if (keyword == "dbname") name = o->val;
    }
    pq_.PQconninfoFree(options);
    place_ = "postgresql://" + host + (port.empty() ? "" : ":" + port) + "/" + name;
    return Status::ok();
  }

  Status lastError() const { return Status::error(oneLine(pq_.PQerrorMessage(connection_))); }

  Status check(const PGresult* result) const {
    if (!result) return lastError();
    ExecStatusType status = pq_.PQresultStatus(result);
    if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK) return Status::ok();
    std::string said = oneLine(pq_.PQresultErrorMessage(result));
    return said.empty() ? lastError() : Status::error(said);
  }

  Status simple(const std::string& sql) {
    Answer answer{{pq_.PQexec(connection_, sql.c_str()), Clear{&pq_}}};
    return check(answer.result.get());
  }

  Result<std::string> prepared(const std::string& sql, size_t parameters) {
    auto found = statements_.find(sql);
    if (found != statements_.end()) return found->second;
    std::string name = "s" + std::to_string(statements_.size());
    Answer answer{
        {pq_.PQprepare(connection_, name.c_str(), sql.c_str(), static_cast<int>(parameters), nullptr), Clear{&pq_}}};
    LOCUTION_RETURN_IF_ERROR(check(answer.result.get()));
    statements_.emplace(sql, name);
    return name;
  }

  Result<Answer> execute(const std::string& sql, std::span<const Value> parameters) {
    LOCUTION_ASSIGN_OR_RETURN(std::string name, prepared(sql, parameters.size()));
    Texts texts(parameters);
    Answer answer{
        {pq_.PQexecPrepared(connection_, name.c_str(), texts.count(), texts.pointers.data(), nullptr, nullptr, 0),
         Clear{&pq_}}};
    LOCUTION_RETURN_IF_ERROR(check(answer.result.get()));
    return answer;
  }

  int64_t changed(PGresult* result) const {
    std::string text = pq_.PQcmdTuples(result);
    int64_t count = 0;
    std::from_chars(text.data(), text.data() + text.size(), count);
    return count;
  }

  /// Sends all, then reads an answer each and the one of the synchronisation.
  Status pipelined(const std::string& name, std::span<const Row> rows, int64_t* sum) {
    for (const Row& row : rows) {
      Texts texts(row);
      if (!pq_.PQsendQueryPrepared(connection_, name.c_str(), texts.count(), texts.pointers.data(), nullptr, nullptr,
                                   0))
        return lastError();
    }
    if (!pq_.PQpipelineSync(connection_)) return lastError();
    Status first;
    for (size_t ended = 0; ended <= rows.size();) {
      Answer answer{{pq_.PQgetResult(connection_), Clear{&pq_}}};
      if (!answer.result) {  // between two statements, or the connection is gone
        if (pq_.PQstatus(connection_) != CONNECTION_OK) return first.isOk() ? lastError() : first;
        ++ended;
        continue;
      }
      ExecStatusType status = pq_.PQresultStatus(answer.result.get());
      if (status == PGRES_PIPELINE_SYNC) return first;
      if (status == PGRES_PIPELINE_ABORTED) continue;  // after a statement that failed
      Status here = check(answer.result.get());
      if (first.isOk()) first = here;
      if (here.isOk()) *sum += changed(answer.result.get());
    }
    return first;
  }

  Value column(const PGresult* result, int row, int field) const {
    if (pq_.PQgetisnull(result, row, field)) return std::monostate();
    std::string text(pq_.PQgetvalue(result, row, field), static_cast<size_t>(pq_.PQgetlength(result, row, field)));
    switch (pq_.PQftype(result, field)) {
      case kInt2:
      case kInt4:
      case kInt8: {
        int64_t number = 0;
        std::from_chars(text.data(), text.data() + text.size(), number);
        return number;
      }
      case kFloat8: {
        std::optional<double> number = exactDouble(text);
        return number ? Value(*number) : Value(text);
      }
      default:
        return text;
    }
  }

  const Libpq& pq_;
  PGconn* connection_ = nullptr;
  std::string place_;
  std::unordered_map<std::string, std::string> statements_;  ///< SQL -> name of the prepared statement
};

}  // namespace

Result<std::unique_ptr<Database>> openPostgres(const std::string& uri) {
  LOCUTION_ASSIGN_OR_RETURN(const Libpq* pq, libpq());
  auto database = std::make_unique<PostgresDatabase>(*pq);
  LOCUTION_RETURN_IF_ERROR(database->open(uri));
  return std::unique_ptr<Database>(std::move(database));
}

}  // namespace locution::records
