#include "tune/region.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "support/check.h"

namespace locution::tune {
namespace {

constexpr size_t kReadable = 64;  // past the end
constexpr auto kMargin = std::byte{0xA5};

size_t pageBytes() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }

}  // namespace

Region::Region(size_t bytes, Sharing sharing, bool huge) : size_(bytes) {
  const size_t page = pageBytes();
  length_ = (bytes + kReadable + 63 + page - 1) / page * page;
  const int flags = (sharing == Sharing::Own ? MAP_PRIVATE : MAP_SHARED) | MAP_ANONYMOUS | MAP_NORESERVE;
  void* all = mmap(nullptr, length_ + 2 * page, PROT_READ | PROT_WRITE, flags, -1, 0);
  LOCUTION_CHECK(all != MAP_FAILED) << "no memory for " << bytes << " bytes: " << std::strerror(errno);
  auto* first = static_cast<std::byte*>(all);
  pages_ = first + page;
  LOCUTION_CHECK(mprotect(first, page, PROT_NONE) == 0 && mprotect(pages_ + length_, page, PROT_NONE) == 0)
      << std::strerror(errno);
#ifdef MADV_HUGEPAGE
  if (huge) madvise(pages_, length_, MADV_HUGEPAGE);
#else
  (void)huge;
#endif
  // As close to the end as alignment lets it be.
  data_ = pages_ + (length_ - kReadable - bytes) / 64 * 64;
  std::fill(pages_, data_, kMargin);
  std::fill(data_ + size_, pages_ + length_, kMargin);
}

Region::~Region() {
  if (pages_ != nullptr) munmap(pages_ - pageBytes(), length_ + 2 * pageBytes());
}

Region& Region::operator=(Region&& other) noexcept {
  std::swap(pages_, other.pages_);
  std::swap(length_, other.length_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

void Region::protect() const { LOCUTION_CHECK(mprotect(pages_, length_, PROT_READ) == 0) << std::strerror(errno); }

bool Region::isIntact() const {
  auto isMargin = [](std::byte b) { return b == kMargin; };
  return std::all_of(static_cast<const std::byte*>(pages_), static_cast<const std::byte*>(data_), isMargin) &&
         std::all_of(static_cast<const std::byte*>(data_ + size_), static_cast<const std::byte*>(pages_ + length_),
                     isMargin);
}

}  // namespace locution::tune
