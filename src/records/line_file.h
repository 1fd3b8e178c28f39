// Text files line by line, compressed where the name says so: .gz, .zst.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "support/status.h"

namespace locution::records {

class LineReader {
 public:
  /// Errors: no such file, not what its name says it is.
  static Result<std::unique_ptr<LineReader>> open(const std::string& path);
  virtual ~LineReader() = default;
  /// Without its end; none after the last line. Errors name the line. Errors: damaged or cut-off compression, a line of over 64 MiB.
  Result<std::optional<std::string>> next();
  int64_t line() const { return line_; }

 protected:
  /// Up to `size` bytes; 0 at the end.
  virtual Result<size_t> read(char* data, size_t size) = 0;

 private:
  std::string buffer_;
  size_t at_ = 0;
  int64_t line_ = 0;
  bool ended_ = false;
};

/// Writes under another name; the file appears when it is finished, and only then.
class LineWriter {
 public:
  static Result<std::unique_ptr<LineWriter>> open(const std::string& path);
  /// Removes what wasn't finished.
  virtual ~LineWriter();
  Status write(std::string_view line);
  Status finish();

 protected:
  /// Compresses all of it, up to the file's end when `last`, and hands it to `save`.
  virtual Status put(std::string_view bytes, bool last) = 0;
  Status save(const void* data, size_t size);

 private:
  std::string path_, part_, buffer_;
  std::FILE* file_ = nullptr;
};

}  // namespace locution::records
