// Puts the caches into the state in which a kernel meets them within a model.
#pragma once

#include <cstddef>

namespace locution::tune {

/// Out of all caches: the weights of the next layer were read an inference ago, and everything else since.
void evict(const std::byte* data, size_t bytes);
/// Into the caches, in order: what the kernel before has just written.
void touch(const std::byte* data, size_t bytes);

}  // namespace locution::tune
