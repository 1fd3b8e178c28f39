// Memory that kernels under measurement read and write: pages between two that nobody may touch, and bytes around the data that tell
// whether somebody wrote there.
#pragma once

#include <cstddef>
#include <utility>

namespace locution::tune {

class Region {
 public:
  Region() = default;
  enum class Sharing { Own, WithChildren };  ///< WithChildren: what a forked process writes is seen by its parent
  /// 64-byte aligned, zeroed; the 64 bytes after the data may be read (full vector loads do), what lies further ends the process.
  /// `huge`: in large pages where the system has them. Ends the process where there is no memory.
  explicit Region(size_t bytes, Sharing sharing = Sharing::Own, bool huge = false);
  ~Region();
  Region(Region&& other) noexcept { *this = std::move(other); }
  Region& operator=(Region&& other) noexcept;

  std::byte* data() const { return data_; }
  size_t size() const { return size_; }
  /// From now on a write ends the process.
  void protect() const;
  /// The bytes next to the data are as they were.
  bool isIntact() const;

 private:
  std::byte* pages_ = nullptr;  // without the guards
  size_t length_ = 0;
  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace locution::tune
