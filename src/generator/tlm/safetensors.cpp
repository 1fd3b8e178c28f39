#include "generator/tlm/safetensors.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <tuple>
#include <vector>

#include "support/check.h"
#include "support/strings.h"

namespace locution::generator::tlm {

namespace {

using Json = nlohmann::json;

struct TypeName {
  DType dtype;
  const char* name;
};
constexpr TypeName kTypes[] = {{DType::F32, "F32"},  {DType::F64, "F64"}, {DType::F16, "F16"}, {DType::BF16, "BF16"},
                               {DType::I64, "I64"},  {DType::I32, "I32"}, {DType::I16, "I16"}, {DType::I8, "I8"},
                               {DType::U64, "U64"},  {DType::U32, "U32"}, {DType::U16, "U16"}, {DType::U8, "U8"},
                               {DType::Bool, "BOOL"}};
constexpr const char* kMetadata = "__metadata__";
constexpr size_t kLengthBytes = 8, kAlign = 64;

std::optional<DType> dtypeOf(const std::string& name) {
  for (const TypeName& t : kTypes)
    if (name == t.name) return t.dtype;
  return std::nullopt;
}
std::string nameOf(DType dtype) {
  for (const TypeName& t : kTypes)
    if (dtype == t.dtype) return t.name;
  LOCUTION_CHECK(false) << "safetensors have no " << dtypeName(dtype);
  return {};
}

bool natural(const Json& json, uint64_t* value) {
  if (!json.is_number_unsigned()) return false;
  *value = json.get<uint64_t>();
  return *value <= static_cast<uint64_t>(INT64_MAX);
}

struct Entry {
  uint64_t begin = 0, end = 0;
  std::string name;
  DType dtype = DType::F32;
  std::vector<int64_t> dims;
};

Result<Entry> entryOf(const std::string& name, const Json& json, uint64_t dataBytes) {
  auto bad = [&](const std::string& what) { return Status::error("tensor " + locution::quoted(name) + ": " + what); };
  if (!json.is_object() || !json.contains("dtype") || !json["dtype"].is_string() || !json.contains("shape") ||
      !json["shape"].is_array() || !json.contains("data_offsets") || !json["data_offsets"].is_array() ||
      json["data_offsets"].size() != 2)
    return bad("the header wants a dtype, a shape and two data_offsets");
  Entry e;
  e.name = name;
  const auto dtype = dtypeOf(json["dtype"].get<std::string>());
  if (!dtype) return bad("unknown dtype " + locution::quoted(json["dtype"].get<std::string>()));
  e.dtype = *dtype;
  constexpr size_t kMostDims = 16;
  if (json["shape"].size() > kMostDims) return bad("more than 16 dims");
  for (const Json& d : json["shape"]) {
    uint64_t extent = 0;
    if (!natural(d, &extent)) return bad("a dim that is no natural number");
    e.dims.push_back(static_cast<int64_t>(extent));
  }
  // Saturates: larger than any file.
  const int64_t elements = Shape::of(e.dims).elements();
  if (!natural(json["data_offsets"][0], &e.begin) || !natural(json["data_offsets"][1], &e.end) || e.begin > e.end ||
      e.end > dataBytes)
    return bad("data_offsets outside the file's " + std::to_string(dataBytes) + " bytes of data");
  const auto width = static_cast<int64_t>(dtypeBits(e.dtype) / 8);
  if (elements > INT64_MAX / width || static_cast<uint64_t>(elements * width) != e.end - e.begin)
    return bad("the shape " + Shape::of(e.dims).str() + " doesn't fit its " + std::to_string(e.end - e.begin) +
               " bytes");
  return e;
}

}  // namespace

Result<SafeTensors> parseSafeTensors(std::span<const std::byte> bytes) {
  uint64_t length = 0;
  if (bytes.size() < kLengthBytes) return Status::error("not a safetensors file: shorter than its length field");
  std::memcpy(&length, bytes.data(), kLengthBytes);
  if (length > bytes.size() - kLengthBytes)
    return Status::error("not a safetensors file: its header would end behind the file");
  const auto* text = reinterpret_cast<const char*>(bytes.data()) + kLengthBytes;
  const std::span<const std::byte> data = bytes.subspan(kLengthBytes + length);
  // The parsed object would keep the last of two equal names.
  std::vector<std::string> names;
  auto watch = [&](int level, Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::key && level == 1) names.push_back(parsed.get<std::string>());
    return true;
  };
  const Json header = Json::parse(text, text + length, watch, false);
  if (header.is_discarded() || !header.is_object())
    return Status::error("not a safetensors file: its header is no JSON object");
  std::sort(names.begin(), names.end());
  if (auto twice = std::adjacent_find(names.begin(), names.end()); twice != names.end())
    return Status::error("the header names " + locution::quoted(*twice) + " twice");
  SafeTensors out;
  std::vector<Entry> entries;
  for (const auto& [name, value] : header.items()) {
    if (name == kMetadata) {
      if (!value.is_object()) return Status::error("__metadata__ is no object");
      for (const auto& [key, one] : value.items()) {
        if (!one.is_string()) return Status::error("__metadata__: " + locution::quoted(key) + " is no text");
        out.metadata[key] = one.get<std::string>();
      }
      continue;
    }
    LOCUTION_ASSIGN_OR_RETURN(Entry e, entryOf(name, value, data.size()));
    entries.push_back(std::move(e));
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  uint64_t at = 0;
  for (const Entry& e : entries) {
    if (e.begin != at)
      return Status::error("tensor " + locution::quoted(e.name) + ": its bytes overlap others or leave a gap");
    at = e.end;
    Tensor t(e.dtype, e.dims);
    if (e.end > e.begin) std::memcpy(t.raw(), data.data() + e.begin, e.end - e.begin);
    out.tensors.emplace(e.name, std::move(t));
  }
  if (at != data.size()) return Status::error("there are bytes behind the last tensor");
  return out;
}

Result<SafeTensors> readSafeTensors(const std::string& path) {
  std::error_code failed;
  const auto size = std::filesystem::file_size(path, failed);
  if (failed) return Status::error(path + ": " + failed.message());
  if (size == 0) return Status::error(path + ": the file is empty");
  LOCUTION_ASSIGN_OR_RETURN(std::shared_ptr<Storage> mapped, mapFile(path, 0, size));
  auto parsed = parseSafeTensors({mapped->data(), size});
  if (!parsed.isOk()) return parsed.status().withContext(path);
  return parsed;
}

std::string safeTensorsBytes(const SafeTensors& content) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!content.metadata.empty()) header[kMetadata] = content.metadata;
  size_t at = 0;
  for (const auto& [name, tensor] : content.tensors) {
    header[name] = {
        {"dtype", nameOf(tensor.dtype())}, {"shape", tensor.dims()}, {"data_offsets", {at, at + tensor.bytes()}}};
    at += tensor.bytes();
  }
  std::string text = header.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  text.append((kAlign - (kLengthBytes + text.size()) % kAlign) % kAlign, ' ');
  const uint64_t length = text.size();
  std::string out(reinterpret_cast<const char*>(&length), kLengthBytes);
  out += text;
  for (const auto& [name, tensor] : content.tensors)
    out.append(reinterpret_cast<const char*>(tensor.raw()), tensor.bytes());
  return out;
}

Status writeSafeTensors(const SafeTensors& content, const std::string& path) {
  const std::string bytes = safeTensorsBytes(content), temporary = path + ".partial";
  {
    std::ofstream file(temporary, std::ios::binary | std::ios::trunc);
    if (!file.write(bytes.data(), static_cast<std::streamsize>(bytes.size())) || !file.flush())
      return Status::error(temporary + ": can't be written");
  }
  std::error_code failed;
  std::filesystem::rename(temporary, path, failed);
  return failed ? Status::error(path + ": " + failed.message()) : Status::ok();
}

}  // namespace locution::generator::tlm
