#include "records/line_file.h"

#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <vector>

namespace locution::records {
namespace {

constexpr size_t kBlock = 1 << 18;
constexpr size_t kLongestLine = 64 << 20;
// Files are written once and kept in repositories.
constexpr int kZstdLevel = 19;

enum class Form { Plain, Gzip, Zstd };
Form formOf(const std::string& path) {
  return path.ends_with(".gz") ? Form::Gzip : path.ends_with(".zst") ? Form::Zstd : Form::Plain;
}

struct CloseFile {
  void operator()(FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<FILE, CloseFile>;

class PlainReader : public LineReader {
 public:
  explicit PlainReader(File file) : file_(std::move(file)) {}
  Result<size_t> read(char* data, size_t size) override {
    size_t got = std::fread(data, 1, size, file_.get());
    if (got == 0 && std::ferror(file_.get())) return Status::error("can't be read");
    return got;
  }

 private:
  File file_;
};

/// What gzip and Zstandard have in common: a file's bytes go in, text comes out, and the end must be the end of what was compressed.
class CompressedReader : public LineReader {
 public:
  explicit CompressedReader(File file) : file_(std::move(file)), input_(kBlock) {}
  Result<size_t> read(char* data, size_t size) override {
    while (true) {
      if (from_ == to_ && !std::feof(file_.get())) {
        from_ = 0;
        to_ = std::fread(input_.data(), 1, input_.size(), file_.get());
        if (std::ferror(file_.get())) return Status::error("can't be read");
      }
      bool last = from_ == to_;
      size_t used = 0, made = 0;
      LOCUTION_RETURN_IF_ERROR(decompress({input_.data() + from_, to_ - from_}, data, size, &used, &made));
      from_ += used;
      if (made > 0) return made;
      if (last) {
        if (!complete()) return Status::error("is cut off");
        return size_t{0};
      }
    }
  }

 protected:
  virtual Status decompress(std::string_view input, char* data, size_t size, size_t* used, size_t* made) = 0;
  /// Between two compressed pieces, or after the last.
  virtual bool complete() const = 0;

 private:
  File file_;
  std::vector<char> input_;
  size_t from_ = 0, to_ = 0;
};

class GzipReader : public CompressedReader {
 public:
  explicit GzipReader(File file) : CompressedReader(std::move(file)) {
    LOCUTION_CHECK(inflateInit2(&stream_, 15 + 16) == Z_OK);  // 16: gzip's header, not zlib's
  }
  ~GzipReader() override { inflateEnd(&stream_); }

 protected:
  Status decompress(std::string_view input, char* data, size_t size, size_t* used, size_t* made) override {
    if (input.empty()) return Status::ok();
    if (complete_) inflateReset(&stream_);  // files that were put one behind the other
    complete_ = false;
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(input.data()));
    stream_.avail_in = static_cast<uInt>(input.size());
    stream_.next_out = reinterpret_cast<Bytef*>(data);
    stream_.avail_out = static_cast<uInt>(size);
    int code = inflate(&stream_, Z_NO_FLUSH);
    *used = input.size() - stream_.avail_in;
    *made = size - stream_.avail_out;
    complete_ = code == Z_STREAM_END;
    if (code == Z_OK || code == Z_STREAM_END || code == Z_BUF_ERROR) return Status::ok();
    return Status::error(std::string("is not what gzip writes: ") + (stream_.msg ? stream_.msg : "damaged"));
  }
  bool complete() const override { return complete_; }

 private:
  z_stream stream_{};
  bool complete_ = false;
};

class ZstdReader : public CompressedReader {
 public:
  explicit ZstdReader(File file) : CompressedReader(std::move(file)), stream_(ZSTD_createDStream()) {
    LOCUTION_CHECK(stream_);
  }
  ~ZstdReader() override { ZSTD_freeDStream(stream_); }

 protected:
  Status decompress(std::string_view input, char* data, size_t size, size_t* used, size_t* made) override {
    ZSTD_inBuffer in{input.data(), input.size(), 0};
    ZSTD_outBuffer out{data, size, 0};
    if (input.empty() && complete_) return Status::ok();
    size_t code = ZSTD_decompressStream(stream_, &out, &in);
    if (ZSTD_isError(code)) return Status::error(std::string("is not what zstd writes: ") + ZSTD_getErrorName(code));
    *used = in.pos;
    *made = out.pos;
    complete_ = code == 0;
    return Status::ok();
  }
  bool complete() const override { return complete_; }

 private:
  ZSTD_DStream* stream_;
  bool complete_ = false;
};

class PlainWriter : public LineWriter {
 public:
  Status put(std::string_view bytes, bool) override { return save(bytes.data(), bytes.size()); }
};

class GzipWriter : public LineWriter {
 public:
  GzipWriter() : output_(kBlock) {
    LOCUTION_CHECK(deflateInit2(&stream_, 9, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY) == Z_OK);
  }
  ~GzipWriter() override { deflateEnd(&stream_); }
  Status put(std::string_view bytes, bool last) override {
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    stream_.avail_in = static_cast<uInt>(bytes.size());
    do {
      stream_.next_out = reinterpret_cast<Bytef*>(output_.data());
      stream_.avail_out = static_cast<uInt>(output_.size());
      deflate(&stream_, last ? Z_FINISH : Z_NO_FLUSH);
      LOCUTION_RETURN_IF_ERROR(save(output_.data(), output_.size() - stream_.avail_out));
    } while (stream_.avail_out == 0);
    return Status::ok();
  }

 private:
  z_stream stream_{};
  std::vector<char> output_;
};

class ZstdWriter : public LineWriter {
 public:
  ZstdWriter() : stream_(ZSTD_createCCtx()), output_(kBlock) {
    LOCUTION_CHECK(stream_);
    ZSTD_CCtx_setParameter(stream_, ZSTD_c_compressionLevel, kZstdLevel);
    ZSTD_CCtx_setParameter(stream_, ZSTD_c_checksumFlag, 1);
  }
  ~ZstdWriter() override { ZSTD_freeCCtx(stream_); }
  Status put(std::string_view bytes, bool last) override {
    ZSTD_inBuffer in{bytes.data(), bytes.size(), 0};
    while (true) {
      ZSTD_outBuffer out{output_.data(), output_.size(), 0};
      size_t left = ZSTD_compressStream2(stream_, &out, &in, last ? ZSTD_e_end : ZSTD_e_continue);
      if (ZSTD_isError(left)) return Status::error(std::string("can't be compressed: ") + ZSTD_getErrorName(left));
      LOCUTION_RETURN_IF_ERROR(save(output_.data(), out.pos));
      if (last ? left == 0 : in.pos == in.size) return Status::ok();
    }
  }

 private:
  ZSTD_CCtx* stream_;
  std::vector<char> output_;
};

}  // namespace

Result<std::unique_ptr<LineReader>> LineReader::open(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return Status::error(path + ": is a folder");
  File file(std::fopen(path.c_str(), "rbe"));
  if (!file) return Status::error(path + ": " + (errno == ENOENT ? "no such file" : std::strerror(errno)));
  switch (formOf(path)) {
    case Form::Gzip:
      return std::unique_ptr<LineReader>(new GzipReader(std::move(file)));
    case Form::Zstd:
      return std::unique_ptr<LineReader>(new ZstdReader(std::move(file)));
    default:
      return std::unique_ptr<LineReader>(new PlainReader(std::move(file)));
  }
}

Result<std::optional<std::string>> LineReader::next() {
  while (true) {
    size_t end = buffer_.find('\n', at_);
    if (end != std::string::npos || (ended_ && at_ < buffer_.size())) {
      ++line_;
      std::string found = buffer_.substr(at_, end == std::string::npos ? end : end - at_);
      at_ = end == std::string::npos ? buffer_.size() : end + 1;
      return std::optional<std::string>(std::move(found));
    }
    if (ended_) return std::optional<std::string>();
    buffer_.erase(0, at_);
    at_ = 0;
    if (buffer_.size() > kLongestLine) return Status::error("a line is longer than 64 MiB");
    size_t before = buffer_.size();
    buffer_.resize(before + kBlock);
    auto got = read(buffer_.data() + before, kBlock);
    buffer_.resize(before + (got.isOk() ? *got : 0));
    if (!got.isOk()) return got.status();
    ended_ = *got == 0;
  }
}

Result<std::unique_ptr<LineWriter>> LineWriter::open(const std::string& path) {
  std::unique_ptr<LineWriter> writer;
  switch (formOf(path)) {
    case Form::Gzip:
      writer = std::make_unique<GzipWriter>();
      break;
    case Form::Zstd:
      writer = std::make_unique<ZstdWriter>();
      break;
    default:
      writer = std::make_unique<PlainWriter>();
  }
  writer->path_ = path;
  writer->part_ = path + ".part";
  writer->file_ = std::fopen(writer->part_.c_str(), "wbe");
  if (!writer->file_) return Status::error(path + ": can't be written: " + std::strerror(errno));
  return writer;
}

LineWriter::~LineWriter() {
  if (!file_) return;
  std::fclose(file_);
  std::remove(part_.c_str());
}

Status LineWriter::save(const void* data, size_t size) {
  if (std::fwrite(data, 1, size, file_) == size) return Status::ok();
  return Status::error(path_ + ": can't be written: " + std::strerror(errno));
}

Status LineWriter::write(std::string_view line) {
  buffer_ += line;
  buffer_ += '\n';
  if (buffer_.size() < kBlock) return Status::ok();
  Status status = put(buffer_, false);
  buffer_.clear();
  return status;
}

Status LineWriter::finish() {
  LOCUTION_RETURN_IF_ERROR(put(buffer_, true));
  // On the disk before it has its name: a file of that name is whole even after a power cut.
  bool saved = std::fflush(file_) == 0 && fsync(fileno(file_)) == 0;
  saved = std::fclose(std::exchange(file_, nullptr)) == 0 && saved;
  if (saved && std::rename(part_.c_str(), path_.c_str()) == 0) return Status::ok();
  Status status = Status::error(path_ + ": can't be written: " + std::strerror(errno));
  std::remove(part_.c_str());
  return status;
}

}  // namespace locution::records
