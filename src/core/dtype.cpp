#include "core/dtype.h"

#include <iterator>
#include <limits>

namespace locution {
namespace {

struct Facts {
  std::string_view text;
  int bits;
  DTypeClass kind;
};
constexpr Facts kFacts[] = {
#define DTYPE(Name, text, bits, kind) {text, bits, DTypeClass::kind},
#include "core/dtypes.inc"
#undef DTYPE
};
const Facts& facts(DType type) { return kFacts[static_cast<size_t>(type)]; }

}  // namespace

std::string_view dtypeName(DType type) { return facts(type).text; }
int dtypeBits(DType type) { return facts(type).bits; }
DTypeClass dtypeClass(DType type) { return facts(type).kind; }

int64_t dtypeBytes(DType type, int64_t count) {
  int64_t bits = 0;
  // Sizes from hostile files: a product past the range is "more than there is", never a small number.
  if (__builtin_mul_overflow(count, static_cast<int64_t>(facts(type).bits), &bits)) {
    if (facts(type).bits < 8) return std::numeric_limits<int64_t>::max() / (8 / facts(type).bits);
    int64_t bytes = 0;
    bool over = __builtin_mul_overflow(count, static_cast<int64_t>(facts(type).bits / 8), &bytes);
    return over ? std::numeric_limits<int64_t>::max() : bytes;
  }
  return bits / 8 + (bits % 8 != 0);
}

std::optional<DType> parseDType(std::string_view name) {
  for (size_t i = 0; i < std::size(kFacts); ++i)
    if (kFacts[i].text == name) return static_cast<DType>(i);
  return std::nullopt;
}

}  // namespace locution
