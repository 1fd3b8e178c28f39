// Whole databases: into one another, and to and from files of JSON lines.
#include <array>
#include <set>

#include "records/columns.h"
#include "records/database.h"
#include "records/json_lines.h"
#include "records/line_file.h"
#include "records/store.h"
#include "support/hash.h"

namespace locution::records {
namespace {

constexpr size_t kTextKinds = 0
#define TEXT_KIND(name, field, table) +1
#include "records/texts.inc"
#undef TEXT_KIND
    ;
// Records that are held before they are stored.
constexpr size_t kBatch = 2000;

}  // namespace

/// Takes texts and records, within a transaction that its caller has begun.
class Store::Intake {
 public:
  explicit Intake(Store& store) : store_(store) {}

  Status text(TextKind kind, const std::string& text) {
    LOCUTION_ASSIGN_OR_RETURN(bool added, store_.putTo(kind, keyOf(text), text));
    merged_.texts += added;
    return Status::ok();
  }

  Status record(const Record& record, bool stale) {
    LOCUTION_RETURN_IF_ERROR(store_.check({&record, 1}));
    rows_.push_back(recordRow(record, stale));
    return rows_.size() < kBatch ? Status::ok() : flush();
  }

  Status flush() {
    auto added = store_.database_->runMany(insertRecord(), rows_);
    if (!added.isOk()) return added.status().withContext(store_.place());
    merged_.records += *added;
    merged_.present += static_cast<int64_t>(rows_.size()) - *added;
    rows_.clear();
    return Status::ok();
  }

  const Merged& merged() const { return merged_; }

 private:
  Store& store_;
  std::vector<Row> rows_;
  Merged merged_;
};

Result<Store::Merged> Store::takeIn(const std::function<Status(Intake& intake)>& fill) {
  auto transaction = Transaction::begin(*database_, Database::Begin::Write);
  if (!transaction.isOk()) return transaction.status().withContext(place());
  Intake intake(*this);
  Status status = fill(intake);
  if (status.isOk()) status = intake.flush();
  if (status.isOk()) status = transaction->commit().withContext(place());
  // Texts of what is rolled back aren't there after all.
  if (!status.isOk()) {
    known_.clear();
    return status;
  }
  return intake.merged();
}

Result<Store::Merged> Store::merge(Store& other) {
  // One state of the other, so that every record's texts have been seen.
  auto reading = Transaction::begin(*other.database_, Database::Begin::Read);
  if (!reading.isOk()) return reading.status().withContext(other.place());
  return takeIn([&](Intake& intake) {
    for (size_t kind = 0; kind < kTextKinds; ++kind)
      LOCUTION_RETURN_IF_ERROR(other.forEachText(
          static_cast<TextKind>(kind),
          [&](const std::string&, const std::string& text) { return intake.text(static_cast<TextKind>(kind), text); }));
    return other.forEach({.stale = Filter::Stale::Include},
                         [&](const Record& record, bool stale) { return intake.record(record, stale); });
  });
}

Status Store::exportTo(const std::string& path, const Filter& filter) {
  LOCUTION_ASSIGN_OR_RETURN(std::unique_ptr<LineWriter> writer, LineWriter::open(path));
  auto reading = Transaction::begin(*database_, Database::Begin::Read);
  if (!reading.isOk()) return reading.status().withContext(place());
  // Of a selection only what it refers to.
  bool everything = filter == Filter{.stale = Filter::Stale::Include};
  std::array<std::set<std::string>, kTextKinds> used;
  auto use = [&](TextKind kind, const std::string& key) { used[static_cast<size_t>(kind)].insert(key); };
  if (!everything)
    LOCUTION_RETURN_IF_ERROR(forEach(filter, [&](const Record& record, bool) {
      use(TextKind::Workload, record.workload);
      use(TextKind::Target, record.target);
      use(TextKind::Machine, record.machine);
      use(TextKind::Incumbent, record.incumbent);
      return Status::ok();
    }));
  LOCUTION_RETURN_IF_ERROR(writer->write(headLine()));
  for (size_t i = 0; i < kTextKinds; ++i) {
    auto kind = static_cast<TextKind>(i);
    LOCUTION_RETURN_IF_ERROR(forEachText(kind, [&](const std::string& key, const std::string& text) {
      return everything || used[i].contains(key) ? writer->write(textLine(kind, text)) : Status::ok();
    }));
  }
  LOCUTION_RETURN_IF_ERROR(
      forEach(filter, [&](const Record& record, bool stale) { return writer->write(recordLine(record, stale)); }));
  return writer->finish();
}

Result<Store::Merged> Store::importFrom(const std::string& path) {
  LOCUTION_ASSIGN_OR_RETURN(std::unique_ptr<LineReader> reader, LineReader::open(path));
  return takeIn([&](Intake& intake) -> Status {
    for (bool first = true;; first = false) {
      auto text = reader->next();
      if (!text.isOk()) return text.status().withContext(path);
      if (!*text) return first ? Status::error(path + ": is empty") : Status::ok();
      std::string where = path + ":" + std::to_string(reader->line());
      auto line = parseLine(**text);
      if (!line.isOk()) return line.status().withContext(where);
      if (first != (line->kind == Line::Kind::Head))
        return Status::error(where + (first ? ": the head of a file of records is missing" : ": a second head"));
      Status status;
      if (line->kind == Line::Kind::Text) status = intake.text(line->textKind, line->text);
      if (line->kind == Line::Kind::Record) status = intake.record(line->record, line->stale);
      LOCUTION_RETURN_IF_ERROR(status.withContext(where));
    }
  });
}

}  // namespace locution::records
