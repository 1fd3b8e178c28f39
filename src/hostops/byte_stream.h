// Little-endian bytes in and out: attributes of host operators and the meta section of a .loc file. A reader never trusts a
// size: the first value that does not fit makes it fail for good, every later read gives zero, and a count is checked
// against the bytes that are left before anything is allocated for it.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace locution::hostops {

static_assert(std::endian::native == std::endian::little, "the file format is little-endian, as are all targets");

class ByteWriter {
 public:
  template <typename T>
  void number(T value) {
    static_assert(std::is_arithmetic_v<T>);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void text(std::string_view value) {
    number(static_cast<uint64_t>(value.size()));
    bytes_.append(value);
  }
  void raw(const void* data, size_t size) {
    if (size > 0) bytes_.append(static_cast<const char*>(data), size);
  }
  template <typename T>
  void numbers(const std::vector<T>& values) {
    number(static_cast<uint64_t>(values.size()));
    raw(values.data(), values.size() * sizeof(T));
  }
  const std::string& bytes() const { return bytes_; }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : bytes_(bytes) {}

  bool failed() const { return failed_; }
  bool atEnd() const { return bytes_.empty(); }
  void fail() {
    failed_ = true;
    bytes_ = {};
  }
  template <typename T>
  T number() {
    static_assert(std::is_arithmetic_v<T> && !std::is_same_v<T, bool>);
    T value{};
    std::string_view from = raw(sizeof value);
    if (!failed_) std::memcpy(&value, from.data(), sizeof value);
    return value;
  }
  std::string_view raw(size_t size) {
    if (size > bytes_.size()) {
      fail();
      return {};
    }
    std::string_view out = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return out;
  }
  /// The number of items that follow, each of at least `itemBytes` (> 0) bytes.
  size_t count(size_t itemBytes) {
    auto n = number<uint64_t>();
    if (n > bytes_.size() / itemBytes) fail();
    return failed_ ? 0 : static_cast<size_t>(n);
  }
  std::string text() { return std::string(raw(count(1))); }
  template <typename T>
  std::vector<T> numbers() {
    std::vector<T> out(count(sizeof(T)));
    std::string_view from = raw(out.size() * sizeof(T));
    if (!failed_ && !out.empty()) std::memcpy(out.data(), from.data(), from.size());
    return out;
  }
  /// An enumerator: a byte below `limit`.
  template <typename T>
  T enumerator(int limit) {
    auto value = number<uint8_t>();
    if (value >= limit) fail();
    return static_cast<T>(failed_ ? 0 : value);
  }

 private:
  std::string_view bytes_;
  bool failed_ = false;
};

}  // namespace locution::hostops
