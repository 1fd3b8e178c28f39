#include "wire_mutator.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <vector>

namespace locution::fuzz {

namespace {

enum Wire : unsigned { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

struct Field {
  uint64_t number = 0;
  unsigned wire = kVarint;
  uint64_t value = 0;  // of a varint
  std::string bytes;   // of the other kinds, unless it is a message
  std::vector<Field> children;
  bool isMessage = false;
};
using Fields = std::vector<Field>;

bool readVarint(const std::string& in, size_t& p, uint64_t& value) {
  value = 0;
  for (int shift = 0; p < in.size() && shift < 64; shift += 7) {
    auto c = static_cast<unsigned char>(in[p++]);
    value |= uint64_t{c & 0x7fU} << shift;
    if (c < 0x80) return true;
  }
  return false;
}
void writeVarint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

bool isText(const std::string& s) {
  return std::all_of(s.begin(), s.end(), [](unsigned char c) { return c >= 0x20; });
}

std::optional<Fields> parse(const std::string& in, int depth) {
  constexpr int kDeepest = 10;
  Fields out;
  for (size_t p = 0; p < in.size();) {
    uint64_t tag = 0, length = 0;
    Field f;
    if (!readVarint(in, p, tag) || tag >> 3 == 0 || tag >> 3 > 1000) return std::nullopt;
    f.number = tag >> 3;
    f.wire = static_cast<unsigned>(tag & 7);
    switch (f.wire) {
      case kVarint:
        if (!readVarint(in, p, f.value)) return std::nullopt;
        break;
      case kFixed64:
      case kFixed32:
        length = f.wire == kFixed64 ? 8 : 4;
        break;
      case kBytes:
        if (!readVarint(in, p, length)) return std::nullopt;
        break;
      default:
        return std::nullopt;
    }
    if (length > in.size() - p) return std::nullopt;
    f.bytes = in.substr(p, length);
    p += length;
    if (f.wire == kBytes && depth < kDeepest && !f.bytes.empty() && !isText(f.bytes))
      if (auto inner = parse(f.bytes, depth + 1)) {
        f.children = std::move(*inner);
        f.isMessage = true;
        f.bytes.clear();
      }
    out.push_back(std::move(f));
  }
  return out;
}

std::string serialise(const Fields& fields) {
  std::string out;
  for (const Field& f : fields) {
    writeVarint(out, f.number << 3 | f.wire);
    if (f.wire == kVarint) {
      writeVarint(out, f.value);
    } else {
      std::string inner = f.isMessage ? serialise(f.children) : f.bytes;
      if (f.wire == kBytes) writeVarint(out, inner.size());
      out += inner;
    }
  }
  return out;
}

struct Place {
  Fields* list;
  size_t index;
  Field& field() const { return (*list)[index]; }
};
void collect(Fields& fields, std::vector<Place>& out) {
  for (size_t i = 0; i < fields.size(); ++i) {
    out.push_back({&fields, i});
    collect(fields[i].children, out);
  }
}

class TreeMutator {
 public:
  explicit TreeMutator(std::mt19937_64& random) : random_(random) {}

  void mutate(Fields& tree, Fields& other) {
    std::vector<Place> places, donors;
    collect(tree, places);
    if (places.empty()) return;
    const Place at = places[pick(places.size())];
    Field& f = at.field();
    switch (pick(8)) {
      case 0:
        at.list->erase(at.list->begin() + static_cast<std::ptrdiff_t>(at.index));
        return;
      case 1: {
        Field copy = f;
        at.list->insert(at.list->begin() + static_cast<std::ptrdiff_t>(pick(at.list->size() + 1)), std::move(copy));
        return;
      }
      case 2:  // a field of the same number from elsewhere: names, types, attributes, whole nodes
      case 3:
        collect(pick(3) == 0 ? other : tree, donors);
        std::erase_if(donors, [&](const Place& d) { return d.field().number != f.number || d.field().wire != f.wire; });
        if (!donors.empty()) f = Field(donors[pick(donors.size())].field());
        return;
      case 4:
        if (at.list->size() > 1) std::swap(f, (*at.list)[pick(at.list->size())]);
        return;
      default:
        return change(f);
    }
  }

 private:
  size_t pick(size_t n) { return n == 0 ? 0 : static_cast<size_t>(random_() % n); }

  uint64_t number(uint64_t old) {
    static constexpr uint64_t kSpecial[] = {0,
                                            1,
                                            2,
                                            3,
                                            7,
                                            16,
                                            64,
                                            255,
                                            1 << 16,
                                            1U << 31,
                                            0xffffffff,
                                            uint64_t{1} << 40,
                                            uint64_t{1} << 62,
                                            uint64_t{1} << 63,
                                            ~uint64_t{0},
                                            ~uint64_t{0} - 1,
                                            ~uint64_t{0} >> 1};
    return pick(3) == 0 ? kSpecial[pick(std::size(kSpecial))] : pick(2) == 0 ? old + pick(5) - 2 : pick(20);
  }

  void change(Field& f) {
    if (f.wire == kVarint) {
      f.value = number(f.value);
    } else if (f.isMessage) {
      if (!f.children.empty()) change(f.children[pick(f.children.size())]);
    } else if (f.wire == kBytes && pick(3) == 0) {
      if (pick(2) == 0)
        f.bytes.resize(pick(f.bytes.size() + 1));
      else
        f.bytes += f.bytes.substr(pick(f.bytes.size() + 1));
    } else if (!f.bytes.empty()) {
      f.bytes[pick(f.bytes.size())] = static_cast<char>(number(static_cast<unsigned char>(f.bytes[0])));
    }
  }

  std::mt19937_64& random_;
};

}  // namespace

std::string mutateMessage(const std::string& bytes, const std::string& other, std::mt19937_64& random) {
  auto tree = parse(bytes, 0), pieces = parse(other, 0);
  if (!tree || !pieces) return mutateBytes(bytes, random);
  TreeMutator mutator(random);
  for (size_t n = 1 + random() % 3; n-- > 0;) mutator.mutate(*tree, *pieces);
  return serialise(*tree);
}

std::string mutateBytes(std::string b, std::mt19937_64& random) {
  auto pick = [&](size_t n) { return static_cast<size_t>(random() % n); };
  for (size_t n = 1 + pick(3); n-- > 0 && !b.empty();) {
    size_t at = pick(b.size()), length = 1 + pick(std::min<size_t>(16, b.size() - at));
    switch (pick(5)) {
      case 0:
        b[at] = static_cast<char>(b[at] ^ (1 << pick(8)));
        break;
      case 1:
        b[at] = static_cast<char>(random());
        break;
      case 2:
        b.erase(at, length);
        break;
      case 3:
        b.insert(at, b.substr(pick(b.size()), length));
        break;
      default:
        b.replace(at, length, b.substr(pick(b.size() - length + 1), length));
    }
  }
  return b;
}

}  // namespace locution::fuzz
