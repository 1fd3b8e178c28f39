#include "records/json_lines.h"

#include <nlohmann/json.hpp>

#include <algorithm>

#include "records/fields.h"
#include "support/strings.h"

namespace locution::records {
namespace {

using Json = nlohmann::json;
// Keeps the order in which fields are written.
using Written = nlohmann::ordered_json;

constexpr int64_t kVersion = 1;

constexpr const char* kTextKinds[] = {
#define TEXT_KIND(name, field, table) field,
#include "records/texts.inc"
#undef TEXT_KIND
};

// Fields that have their default are left out.
void put(Written& json, const char* name, const std::string& value) {
  if (!value.empty()) json[name] = value;
}
void put(Written& json, const char* name, uint64_t value) {
  if (value != 0) json[name] = value;
}
void put(Written& json, const char* name, int64_t value) {
  if (value != 0) json[name] = value;
}
void put(Written& json, const char* name, Outcome value) { json[name] = outcomeName(value); }
void put(Written& json, const char* name, const std::vector<double>& value) {
  if (!value.empty()) json[name] = value;
}
void put(Written& json, const char* name, const std::optional<double>& value) {
  if (value) json[name] = *value;
}

bool take(const Json& json, std::string& value) {
  if (!json.is_string()) return false;
  value = json.get_ref<const std::string&>();
  return true;
}
bool take(const Json& json, uint64_t& value) {
  if (!json.is_number_unsigned()) return false;
  value = json.get<uint64_t>();
  return true;
}
bool take(const Json& json, int64_t& value) {
  uint64_t wide = 0;
  if (!take(json, wide) || wide > INT64_MAX) return false;
  value = static_cast<int64_t>(wide);
  return true;
}
bool take(const Json& json, Outcome& value) {
  std::optional<Outcome> outcome = json.is_string() ? outcomeOf(json.get_ref<const std::string&>()) : std::nullopt;
  if (outcome) value = *outcome;
  return outcome.has_value();
}
bool take(const Json& json, double& value) {
  if (!json.is_number()) return false;
  value = json.get<double>();
  return true;
}
bool take(const Json& json, std::optional<double>& value) { return take(json, value.emplace()); }
bool take(const Json& json, std::vector<double>& value) {
  if (!json.is_array()) return false;
  for (const Json& one : json)
    if (!take(one, value.emplace_back())) return false;
  return true;
}
bool take(const Json& json, bool& value) {
  if (!json.is_boolean()) return false;
  value = json.get<bool>();
  return true;
}

/// Takes the fields of one object; at the end every one must have been asked for.
class Fields {
 public:
  explicit Fields(const Json& json) : json_(json) {}
  template <typename T>
  void optional(const char* name, T& value) {
    auto found = json_.find(name);
    if (found == json_.end()) return;
    ++taken_;
    if (!take(*found, value))
      fail(std::string("the field ") + locution::quoted(name) + " has a value of the wrong kind");
  }
  template <typename T>
  void required(const char* name, T& value) {
    if (!json_.contains(name)) fail(std::string("the field ") + locution::quoted(name) + " is missing");
    optional(name, value);
  }
  void fail(const std::string& why) {
    if (status_.isOk()) status_ = Status::error(why);
  }
  template <typename Known>
  Status finish(const Known& isKnown) {
    if (taken_ == json_.size()) return status_;
    for (const auto& item : json_.items())
      if (!isKnown(item.key())) fail("unknown field " + locution::quoted(item.key()));
    return status_;
  }

 private:
  const Json& json_;
  size_t taken_ = 0;
  Status status_;
};

std::string dumped(const Written& json) {
  // Whatever gets here has been checked; the mode only keeps the library from throwing.
  return json.dump(-1, ' ', false, Written::error_handler_t::replace);
}

Status takeHead(const Json& json) {
  Fields fields(json);
  std::string what;
  int64_t version = 0;
  fields.required("locution", what);
  fields.required("version", version);
  if (what != "records") fields.fail("not a file of records");
  if (version > kVersion)
    fields.fail("the file has version " + std::to_string(version) + ", this program knows version " +
                std::to_string(kVersion));
  return fields.finish([](const std::string& name) { return name == "locution" || name == "version"; });
}

Status takeText(const Json& json, Line* line) {
  Fields fields(json);
  std::string kind;
  fields.required("kind", kind);
  fields.required("text", line->text);
  const auto* found = std::find(std::begin(kTextKinds), std::end(kTextKinds), kind);
  if (found == std::end(kTextKinds)) fields.fail("unknown kind of text " + locution::quoted(kind));
  line->textKind = static_cast<TextKind>(found - kTextKinds);
  return fields.finish([](const std::string& name) { return name == "kind" || name == "text"; });
}

Status takeRecord(const Json& json, Line* line) {
  Fields fields(json);
  forEachField(line->record, [&](const char* name, auto& value) { fields.optional(name, value); });
  fields.optional("stale", line->stale);
  LOCUTION_RETURN_IF_ERROR(fields.finish([](const std::string& name) {
    bool known = name == "stale";
    forEachField(Record(), [&](const char* field, const auto&) { known = known || name == field; });
    return known;
  }));
  return line->record.check();
}

}  // namespace

std::string headLine() {
  Written json;
  json["locution"] = "records";
  json["version"] = kVersion;
  return dumped(json);
}

std::string textLine(TextKind kind, const std::string& text) {
  Written json;
  json["kind"] = kTextKinds[static_cast<size_t>(kind)];
  json["text"] = text;
  return dumped(json);
}

std::string recordLine(const Record& record, bool stale) {
  Written json;
  forEachField(record, [&](const char* name, const auto& value) { put(json, name, value); });
  if (stale) json["stale"] = true;
  return dumped(json);
}

Result<Line> parseLine(const std::string& text) {
  Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return Status::error("not a JSON object");
  Line line;
  Status status;
  if (json.contains("locution")) {
    line.kind = Line::Kind::Head;
    status = takeHead(json);
  } else if (json.contains("text")) {
    line.kind = Line::Kind::Text;
    status = takeText(json, &line);
  } else {
    line.kind = Line::Kind::Record;
    status = takeRecord(json, &line);
  }
  if (!status.isOk()) return status;
  return line;
}

}  // namespace locution::records
