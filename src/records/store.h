// The database of measured sentences: a SQLite file or a PostgreSQL server behind one interface, with the same tables.
// Invariant: a call that changes something does it in one transaction: when it has returned success, no kill takes it back; killed
// before, nothing of it is there. A Store serves one thread, and a forked child leaves its parent's alone.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "records/record.h"
#include "support/status.h"

namespace locution::records {

enum class TextKind {
#define TEXT_KIND(name, field, table) name,
#include "records/texts.inc"
#undef TEXT_KIND
};

/// Which records a query sees. An empty text means any.
struct Filter {
  std::string workload = {}, target = {}, machine = {}, sentence = {}, proposer = {}, model = {}, incumbent = {},
              compiler = {}, code = {};
  std::optional<Outcome> outcome = {};
  /// Times of code that is no longer generated are left out unless asked for.
  enum class Stale { Exclude, Include, Only } stale = Stale::Exclude;
  bool operator==(const Filter&) const = default;
};

/// What `best` goes by, taken over all records of a sentence as their median. Ratios, for a machine's drift cancels in them; they are
/// comparable where the incumbent is the same, seconds where the machine is: name it in the filter.
enum class Rank { Ratio, Seconds };

struct Best {
  Record record;             ///< of the sentence's records the one nearest to the median, the earliest of equals
  double value = 0;          ///< the median that it was ranked by
  int64_t measurements = 0;  ///< over how many records
};

/// How many records there are of a kind.
struct Count {
  std::string workload, target;
  Outcome outcome = Outcome::Ok;
  bool stale = false;
  int64_t records = 0;
};

enum class Claim {
  Mine,  ///< do it, then `finish`
  Busy,  ///< another worker is at it
  Done
};

class Database;

class Store {
 public:
  enum class Open { Create, Existing, Read };
  /// `where`: a file, or postgresql://... (libpq's connection URI). Create makes what is missing. Read takes a file that can't be written
  /// too, and changes nothing. Errors: no such file, a file that is none of ours or damaged, no server there, a newer version's tables.
  static Result<std::unique_ptr<Store>> open(const std::string& where, Open mode = Open::Create);
  static bool isServer(const std::string& where);
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;
  /// The place, without its password, for messages.
  const std::string& place() const;

  // Texts, each under its key.
  /// Returns the key; what is there already stays.
  Result<std::string> put(TextKind kind, const std::string& text);
  Result<std::optional<std::string>> text(TextKind kind, const std::string& key);
  /// In the order of the keys.
  Status forEachText(TextKind kind,
                     const std::function<Status(const std::string& key, const std::string& text)>& visit);

  // Records.
  /// Whether it was new. Errors: a field that `Record::check` refuses, a key whose text hasn't been put.
  Result<bool> add(const Record& record);
  /// All or none, in one transaction: much faster than one by one. Returns how many were new.
  Result<int64_t> addAll(std::span<const Record> records);
  /// By workload, target and id: an order that depends on what is stored alone. `visit` may use the store.
  Status forEach(const Filter& filter, const std::function<Status(const Record& record, bool stale)>& visit);
  Result<std::vector<Record>> all(const Filter& filter);
  Result<int64_t> count(const Filter& filter);
  /// In the order of workload, target, outcome.
  Result<std::vector<Count>> counts();
  /// The best sentences of a workload on a target, best first, at most `limit`: those that were timed and never failed, as far as the
  /// filter sees; its workload, target and outcome are ignored. Ties go by sentence.
  Result<std::vector<Best>> best(const std::string& workload, const std::string& target, const Filter& filter = {},
                                 Rank rank = Rank::Ratio, int limit = 1);

  // Staleness. A record's time holds as long as its sentence still becomes the same machine code.
  /// What this version of the compiler makes of a sentence: its records of other code become stale, those of this code count (again).
  /// Returns how many marks changed.
  Result<int64_t> codeIs(const std::string& workload, const std::string& target, const std::string& sentence,
                         const std::string& code, const std::string& compiler);
  /// Records of other compiler versions become stale, but those whose code `codeIs` has found unchanged in this version. Returns how many
  /// did.
  Result<int64_t> compilerIs(const std::string& version);

  // Tasks of a collection, shared by its workers. A task is a name; who makes the list makes it the same everywhere.
  /// Takes the task, or renews it for the worker that has it. After `leaseSeconds` (by the database's clock) without a renewal anyone
  /// may have it. A worker's name must be its alone, e.g. host, process and start time.
  Result<Claim> claim(const std::string& task, const std::string& worker, double leaseSeconds);
  /// Adds what the task gave and marks it done, in one transaction. False, and nothing added, when it is no longer this worker's: its
  /// lease ran out and another took it.
  Result<bool> finish(const std::string& task, const std::string& worker, std::span<const Record> records = {});
  /// Gives a task back undone, e.g. when interrupted.
  Status release(const std::string& task, const std::string& worker);
  /// Names of the tasks that are done and start with `prefix`, sorted.
  Result<std::vector<std::string>> doneTasks(const std::string& prefix);

  // Whole databases.
  struct Merged {
    int64_t texts = 0, records = 0, present = 0;  ///< new, new, and there before
  };
  /// Takes over the other's texts and records, all or none. Marks of staleness come along with new records; tasks stay behind.
  Result<Merged> merge(Store& other);
  /// JSON lines: a head, the texts that records refer to, the records (docs/decisions/records.md). Equal contents make equal bytes,
  /// whatever the back end and the order of adding. Compressed where the name ends in .gz or .zst. The file is whole or not there.
  Status exportTo(const std::string& path, const Filter& filter = {.stale = Filter::Stale::Include});
  /// All or none. Errors name file and line.
  Result<Merged> importFrom(const std::string& path);

  /// Reads everything: the back end's own checks, and that each text and record is what its key and id say. Returns the number of records.
  Result<int64_t> verify();

 private:
  class Intake;
  explicit Store(std::unique_ptr<Database> database);
  Result<bool> putTo(TextKind kind, const std::string& key, const std::string& text);
  Status known(TextKind kind, const std::string& key);
  using Visitor = std::function<Status(const Record& record, bool stale, const std::string& id)>;
  Status scan(const Filter& filter, const Visitor& visit);
  /// All that `fill` hands in, in one transaction.
  Result<Merged> takeIn(const std::function<Status(Intake& intake)>& fill);
  /// That a database takes them: each by itself, and that it has their texts.
  Status check(std::span<const Record> records);

  std::unique_ptr<Database> database_;
  std::set<std::pair<TextKind, std::string>> known_;  ///< texts that the database has
};

}  // namespace locution::records
