// Mutations of protobuf messages that keep them messages: fields are changed, dropped, doubled, moved and exchanged in a tree read from
// the wire format alone, and lengths are written anew. Without a schema, bytes that read as a message may be one by chance: no harm.
#pragma once

#include <cstdint>
#include <random>
#include <string>

namespace locution::fuzz {

/// `bytes` with a few mutations; `other` is a message of the same kind to take pieces from.
std::string mutateMessage(const std::string& bytes, const std::string& other, std::mt19937_64& random);

/// Without regard to any structure: bits, bytes, ranges.
std::string mutateBytes(std::string bytes, std::mt19937_64& random);

}  // namespace locution::fuzz
