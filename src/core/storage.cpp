// Where tensors' bytes live: heap, anonymous pages for what is large (untouched pages take no memory and go straight back to
// the system when freed), a taken-over string, or a private mapping of a file.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "core/tensor.h"

namespace locution {
namespace {

constexpr size_t kTail = 64;           // readable bytes past the end
constexpr size_t kMapFrom = 1u << 20;  // bytes from which pages are mapped instead of allocated
constexpr size_t kHugeFrom = 2u << 20;

class HeapStorage : public Storage {
 public:
  explicit HeapStorage(size_t size) : size_(size) {
    size_t total = (size + kTail + 63) / 64 * 64;
    data_ = static_cast<std::byte*>(std::aligned_alloc(64, total));
    LOCUTION_CHECK(data_ != nullptr) << "out of memory: " << size << " bytes";
    std::memset(data_, 0, total);
  }
  ~HeapStorage() override { std::free(data_); }
  HeapStorage(const HeapStorage&) = delete;
  HeapStorage& operator=(const HeapStorage&) = delete;
  std::byte* data() override { return data_; }
  size_t size() const override { return size_; }

 private:
  std::byte* data_;
  size_t size_;
};

class StringStorage : public Storage {
 public:
  explicit StringStorage(std::string bytes) : bytes_(std::move(bytes)) {}
  std::byte* data() override { return reinterpret_cast<std::byte*>(bytes_.data()); }
  size_t size() const override { return bytes_.size(); }

 private:
  std::string bytes_;
};

class MappedStorage : public Storage {
 public:
  MappedStorage(void* base, size_t mapped, size_t skip, size_t size)
      : base_(base), mapped_(mapped), skip_(skip), size_(size) {}
  ~MappedStorage() override { munmap(base_, mapped_); }
  MappedStorage(const MappedStorage&) = delete;
  MappedStorage& operator=(const MappedStorage&) = delete;
  std::byte* data() override { return static_cast<std::byte*>(base_) + skip_; }
  size_t size() const override { return size_; }

 private:
  void* base_;
  size_t mapped_;
  size_t skip_;
  size_t size_;
};

}  // namespace

std::shared_ptr<Storage> allocateStorage(size_t bytes) {
  if (bytes < kMapFrom) return std::make_shared<HeapStorage>(bytes);
  size_t total = 0;
  void* base = MAP_FAILED;
  if (!__builtin_add_overflow(bytes, kTail, &total))
    base = mmap(nullptr, total, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  LOCUTION_CHECK(base != MAP_FAILED) << "out of memory: " << bytes << " bytes";
#ifdef MADV_HUGEPAGE
  // Weights are written once, page by page: a fault for each 4 KiB costs as much as the writing.
  if (bytes >= kHugeFrom) madvise(base, total, MADV_HUGEPAGE);
#endif
  return std::make_shared<MappedStorage>(base, total, 0, bytes);
}

std::shared_ptr<Storage> storageFromString(std::string bytes) {
  return std::make_shared<StringStorage>(std::move(bytes));
}

Result<std::shared_ptr<Storage>> mapFile(const std::string& path, size_t offset, size_t size) {
  int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return Status::error("can't open '" + path + "': " + std::strerror(errno));
  struct stat info = {};
  Status status;
  void* base = nullptr;
  size_t skip = offset % static_cast<size_t>(sysconf(_SC_PAGESIZE));
  if (fstat(file, &info) != 0) {
    status = Status::error("can't read '" + path + "': " + std::strerror(errno));
  } else if (!S_ISREG(info.st_mode)) {
    status = Status::error("'" + path + "' isn't a regular file");
  } else if (size_t length = static_cast<size_t>(info.st_size); offset > length || size > length - offset) {
    status = Status::error("'" + path + "' has " + std::to_string(length) + " bytes; " + std::to_string(size) +
                           " bytes from " + std::to_string(offset) + " on are past its end");
  } else if (size > 0) {
    base = mmap(nullptr, size + skip, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, file,
                static_cast<off_t>(offset - skip));
    if (base == MAP_FAILED) status = Status::error("can't map '" + path + "': " + std::strerror(errno));
  }
  close(file);
  LOCUTION_RETURN_IF_ERROR(status);
  if (size == 0) return allocateStorage(0);
  return std::shared_ptr<Storage>(std::make_shared<MappedStorage>(base, size + skip, skip, size));
}

}  // namespace locution
