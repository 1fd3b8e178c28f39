#include "frontend/onnx/proto_io.h"

#include <fcntl.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/stubs/logging.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <filesystem>

namespace locution::frontend {
namespace {

// A graph in a graph costs three levels of messages: thirty of them are more than any model has.
constexpr int kMaxNesting = 100;

Status parseStream(google::protobuf::io::ZeroCopyInputStream& stream, const char* what,
                   google::protobuf::MessageLite& message) {
  google::protobuf::LogSilencer silencer;
  google::protobuf::io::CodedInputStream coded(&stream);
  coded.SetRecursionLimit(kMaxNesting);
  coded.SetTotalBytesLimit(INT_MAX);
  if (message.ParseFromCodedStream(&coded) && coded.ConsumedEntireMessage()) return Status::ok();
  return Status::error(std::string("not ") + what + ": damaged or truncated protobuf");
}

}  // namespace

std::string folderOf(const std::string& path) {
  std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

std::string fileNameOf(const std::string& path) { return std::filesystem::path(path).filename().string(); }

Status parseProtoFile(const std::string& path, const char* what, google::protobuf::MessageLite& message) {
  int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return Status::error("can't open '" + path + "': " + std::strerror(errno));
  struct stat info = {};
  Status status;
  if (fstat(file, &info) != 0) {
    status = Status::error("can't read '" + path + "': " + std::strerror(errno));
  } else if (!S_ISREG(info.st_mode)) {
    status = Status::error("'" + path + "' isn't a regular file");
  } else if (info.st_size > INT_MAX) {
    status = Status::error(path + ": " + std::to_string(info.st_size) +
                           " bytes; one protobuf holds less than 2 GB: save the weights as external data");
  } else {
    // Mapped: weights are copied once, from the page cache to where they stay.
    const auto size = static_cast<size_t>(info.st_size);
    void* bytes = size > 0 ? mmap(nullptr, size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, file, 0) : nullptr;
    if (bytes == MAP_FAILED) {
      status = Status::error("can't read '" + path + "': " + std::strerror(errno));
    } else {
      google::protobuf::io::ArrayInputStream stream(bytes, static_cast<int>(size));
      status = parseStream(stream, what, message).withContext(path);
      if (size > 0) munmap(bytes, size);
    }
  }
  close(file);
  return status;
}

Status parseProtoBytes(std::span<const std::byte> bytes, const char* what, google::protobuf::MessageLite& message) {
  if (bytes.size() > INT_MAX)
    return Status::error("one protobuf holds less than 2 GB: save the weights as external data");
  google::protobuf::io::ArrayInputStream stream(bytes.data(), static_cast<int>(bytes.size()));
  return parseStream(stream, what, message);
}

Status writeProtoFile(const std::string& path, const google::protobuf::MessageLite& message) {
  google::protobuf::LogSilencer silencer;
  if (message.ByteSizeLong() > INT_MAX)
    return Status::error("can't write '" + path + "': a protobuf holds less than 2 GB");
  std::string temporary = path + ".tmp" + std::to_string(getpid());
  int file = open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file < 0) return Status::error("can't write '" + path + "': " + std::strerror(errno));
  int error = 0;
  {
    google::protobuf::io::FileOutputStream stream(file);
    if (!message.SerializeToZeroCopyStream(&stream) || !stream.Flush())
      error = stream.GetErrno() ? stream.GetErrno() : EIO;
  }
  if (close(file) != 0 && error == 0) error = errno;
  if (error == 0 && std::rename(temporary.c_str(), path.c_str()) != 0) error = errno;
  if (error == 0) return Status::ok();
  unlink(temporary.c_str());
  return Status::error("can't write '" + path + "': " + std::strerror(error));
}

}  // namespace locution::frontend
