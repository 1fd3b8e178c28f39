#include "records/columns.h"

#include <charconv>
#include <cstring>

#include "records/fields.h"
#include "support/strings.h"

namespace locution::records {
namespace {

// What the table holds beside the fields: see recordRow.
constexpr const char* kDerived[] = {"id", "seconds", "stale", "confirmed"};

Value valueOf(const std::string& field) { return field; }
Value valueOf(int64_t field) { return field; }
// By its bits: SQL has no unsigned integers.
Value valueOf(uint64_t field) { return static_cast<int64_t>(field); }
Value valueOf(Outcome field) { return std::string(outcomeName(field)); }
Value valueOf(const std::optional<double>& field) { return field ? Value(*field) : Value(); }
Value valueOf(const std::vector<double>& field) {
  std::string out;
  for (double value : field) out += (out.empty() ? "" : " ") + exactText(value);
  return out;
}

bool readInto(const Value& value, std::string& field) {
  if (std::holds_alternative<std::monostate>(value)) return true;  // an incumbent that there is none of
  const auto* text = std::get_if<std::string>(&value);
  if (text) field = *text;
  return text;
}
bool readInto(const Value& value, int64_t& field) {
  const auto* number = std::get_if<int64_t>(&value);
  if (number) field = *number;
  return number;
}
bool readInto(const Value& value, uint64_t& field) {
  int64_t bits = 0;
  if (!readInto(value, bits)) return false;
  field = static_cast<uint64_t>(bits);
  return true;
}
bool readInto(const Value& value, Outcome& field) {
  std::string name;
  if (!readInto(value, name)) return false;
  std::optional<Outcome> outcome = outcomeOf(name);
  if (outcome) field = *outcome;
  return outcome.has_value();
}
bool readInto(const Value& value, std::optional<double>& field) {
  if (const auto* number = std::get_if<double>(&value)) field = *number;
  return !std::holds_alternative<std::string>(value);
}
bool readInto(const Value& value, std::vector<double>& field) {
  std::string text;
  if (!readInto(value, text)) return false;
  if (text.empty()) return true;
  for (const std::string& part : splitText(text, ' ')) {
    std::optional<double> number = exactDouble(part);
    if (!number) return false;
    field.push_back(*number);
  }
  return true;
}

}  // namespace

std::string exactText(double value) {
  char text[40];
  return std::string(text, std::to_chars(text, text + sizeof text, value).ptr);
}

std::optional<double> exactDouble(std::string_view text) {
  double value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

const std::string& recordColumns() {
  static const std::string kColumns = [] {
    std::vector<std::string> names;
    forEachField(Record(), [&](const char* name, const auto&) { names.emplace_back(name); });
    return join(names, ", ");
  }();
  return kColumns;
}

const std::string& insertRecord() {
  static const std::string kInsert = [] {
    size_t count = splitText(recordColumns(), ',').size() + std::size(kDerived);
    std::vector<std::string> places;
    for (size_t i = 1; i <= count; ++i) places.push_back("$" + std::to_string(i));
    return "INSERT INTO records (" + recordColumns() + ", " + join(kDerived, ", ") + ") VALUES (" + join(places, ", ") +
           ") ON CONFLICT DO NOTHING";
  }();
  return kInsert;
}

Row recordRow(const Record& record, bool stale) {
  Row row;
  forEachField(record, [&](const char* name, const auto& value) {
    row.push_back(valueOf(value));
    if (std::strcmp(name, "incumbent") == 0 && record.incumbent.empty()) row.back() = Value();
  });
  row.emplace_back(record.id());
  row.push_back(valueOf(record.seconds()));
  row.emplace_back(int64_t{stale});
  row.emplace_back(record.compiler);
  return row;
}

std::vector<Row> rowsOf(std::span<const Record> records) {
  std::vector<Row> rows;
  rows.reserve(records.size());
  for (const Record& record : records) rows.push_back(recordRow(record, false));
  return rows;
}

Result<Record> recordOf(const Row& row) {
  Record record;
  size_t at = 0;
  const char* wrong = nullptr;
  forEachField(record, [&](const char* name, auto& value) {
    if (!readInto(row.at(at++), value) && !wrong) wrong = name;
  });
  if (wrong) return Status::error(std::string("is damaged: a record's ") + wrong + " can't be read");
  return record;
}

}  // namespace locution::records
