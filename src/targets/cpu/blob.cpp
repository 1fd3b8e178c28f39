// Only distances between sections of one blob can be expressed: no base address is ever known, not even its place in a page. That is
// why AArch64 is compiled with the tiny code model, whose addresses are PC-relative; its other model reaches constants by page (ADRP).
#include "targets/cpu/blob.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <string_view>

namespace locution::targets::cpu {
namespace {

constexpr size_t kMaxAlign = 64;

template <typename T>
bool readAt(std::span<const std::byte> bytes, size_t offset, T* out) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return false;
  std::memcpy(out, bytes.data() + offset, sizeof(T));
  return true;
}

struct Section {
  Elf64_Shdr header{};
  size_t index = 0;
  std::string_view name;
  size_t offset = 0;  // in the blob
  bool placed = false;
};

class Linker {
 public:
  Linker(std::span<const std::byte> object, std::string entry) : object_(object), entry_(std::move(entry)) {}

  Result<std::vector<std::byte>> link() {
    LOCUTION_RETURN_IF_ERROR(readSections());
    LOCUTION_RETURN_IF_ERROR(layOut());
    LOCUTION_RETURN_IF_ERROR(checkEntry());
    for (const Section& s : sections_) {
      if (s.header.sh_type == SHT_REL) return Status::error("relocations without addends");
      if (s.header.sh_type == SHT_RELA) LOCUTION_RETURN_IF_ERROR(relocate(s));
    }
    return std::move(blob_);
  }

 private:
  std::string_view text(const Section& table, size_t at) const {
    auto bytes = contents(table);
    if (at >= bytes.size()) return {};
    const auto* start = reinterpret_cast<const char*>(bytes.data()) + at;
    return {start, strnlen(start, bytes.size() - at)};
  }
  std::span<const std::byte> contents(const Section& s) const {
    if (s.header.sh_type == SHT_NOBITS || s.header.sh_offset > object_.size()) return {};
    return object_.subspan(s.header.sh_offset, std::min<size_t>(s.header.sh_size, object_.size() - s.header.sh_offset));
  }

  Status readSections() {
    if (!readAt(object_, 0, &header_) || std::memcmp(header_.e_ident, ELFMAG, SELFMAG) != 0)
      return Status::error("not an ELF object");
    sections_.resize(header_.e_shnum);
    for (size_t i = 0; i < sections_.size(); ++i) {
      sections_[i].index = i;
      if (!readAt(object_, header_.e_shoff + i * sizeof(Elf64_Shdr), &sections_[i].header))
        return Status::error("a truncated ELF object");
    }
    if (header_.e_shstrndx >= sections_.size()) return Status::error("an ELF object without section names");
    for (Section& s : sections_) {
      s.name = text(sections_[header_.e_shstrndx], s.header.sh_name);
      if (s.header.sh_type == SHT_SYMTAB) symbols_ = &s;
    }
    return symbols_ ? Status::ok() : Status::error("an ELF object without symbols");
  }

  Status layOut() {
    auto place = [&](Section& s) {
      size_t align = std::clamp<size_t>(s.header.sh_addralign, 1, kMaxAlign);
      // Data after code starts on a line of its own.
      if (!blob_.empty() && (s.header.sh_flags & SHF_EXECINSTR) == 0) align = std::max<size_t>(align, 16);
      blob_.resize((blob_.size() + align - 1) / align * align);
      s.offset = blob_.size();
      s.placed = true;
      auto bytes = contents(s);
      blob_.insert(blob_.end(), bytes.begin(), bytes.end());
    };
    for (Section& s : sections_) {
      if (s.name == ".text") place(s);
    }
    for (Section& s : sections_) {
      bool isLoaded = (s.header.sh_flags & SHF_ALLOC) != 0 && s.header.sh_size > 0;
      if (!isLoaded || s.placed || s.name == ".eh_frame") continue;
      if ((s.header.sh_flags & SHF_WRITE) != 0) return Status::error("writable data in section " + std::string(s.name));
      place(s);
    }
    return Status::ok();
  }

  bool symbolAt(size_t index, Elf64_Sym* symbol) const {
    return readAt(contents(*symbols_), index * sizeof(Elf64_Sym), symbol);
  }
  std::string symbolName(const Elf64_Sym& symbol) const {
    size_t table = symbols_->header.sh_link;
    return table < sections_.size() ? std::string(text(sections_[table], symbol.st_name)) : std::string();
  }

  Status checkEntry() const {
    bool found = false;
    Elf64_Sym symbol{};
    for (size_t i = 1; symbolAt(i, &symbol); ++i) {
      auto type = ELF64_ST_TYPE(symbol.st_info);
      if (symbol.st_shndx == SHN_UNDEF && type != STT_FILE)
        return Status::error("the code needs an outside symbol, " + symbolName(symbol));
      if (symbolName(symbol) != entry_ || symbol.st_shndx >= sections_.size()) continue;
      const Section& home = sections_[symbol.st_shndx];
      found = home.placed && home.offset + symbol.st_value == 0;
    }
    return found ? Status::ok() : Status::error("the entry is not at the start of the code");
  }

  Status relocate(const Section& table) {
    if (table.header.sh_info >= sections_.size()) return Status::error("relocations for no section");
    const Section& home = sections_[table.header.sh_info];
    if (!home.placed) return Status::ok();
    Elf64_Rela r{};
    for (size_t i = 0; readAt(contents(table), i * sizeof r, &r); ++i) {
      Elf64_Sym symbol{};
      if (!symbolAt(ELF64_R_SYM(r.r_info), &symbol)) return Status::error("a relocation against no symbol");
      if (symbol.st_shndx >= sections_.size() || !sections_[symbol.st_shndx].placed) {
        return Status::error("the code refers to " + symbolName(symbol) + ", which is not part of it");
      }
      size_t at = home.offset + r.r_offset;
      auto target = static_cast<int64_t>(sections_[symbol.st_shndx].offset + symbol.st_value);
      int64_t distance = target + r.r_addend - static_cast<int64_t>(at);
      LOCUTION_RETURN_IF_ERROR(apply(ELF64_R_TYPE(r.r_info), at, distance));
    }
    return Status::ok();
  }

  Status apply(uint64_t type, size_t at, int64_t distance) {
    if (header_.e_machine == EM_X86_64 && (type == R_X86_64_PC32 || type == R_X86_64_PLT32))
      return write(at, distance, 32);
    if (header_.e_machine == EM_AARCH64) {
      switch (type) {
        case R_AARCH64_PREL64:
          return write(at, distance, 64);
        case R_AARCH64_PREL32:
          return write(at, distance, 32);
        case R_AARCH64_ADR_PREL_LO21:
          return patchAdr(at, distance);
        case R_AARCH64_LD_PREL_LO19:
        case R_AARCH64_CONDBR19:
          return patchWords(at, distance, 19, 5);
        case R_AARCH64_TSTBR14:
          return patchWords(at, distance, 14, 5);
        case R_AARCH64_JUMP26:
        case R_AARCH64_CALL26:
          return patchWords(at, distance, 26, 0);
        case R_AARCH64_ADR_PREL_PG_HI21:
        case R_AARCH64_ADR_PREL_PG_HI21_NC:
        case R_AARCH64_ADR_GOT_PAGE:
          return Status::error("an address by page (relocation type " + std::to_string(type) +
                               "): position-independent code knows distances alone");
        default:
          break;
      }
    }
    return Status::error("relocation type " + std::to_string(type) + " of machine " +
                         std::to_string(header_.e_machine) + " is not position-independent or not supported");
  }

  bool fits(int64_t value, int bits) const {
    return bits == 64 || (value >= -(int64_t{1} << (bits - 1)) && value < int64_t{1} << (bits - 1));
  }
  /// The `bytes` at `at` lie in the blob, and `value` in a signed field of `bits`.
  Status checkField(size_t at, size_t bytes, int64_t value, int bits) const {
    bool inside = blob_.size() >= bytes && at <= blob_.size() - bytes;
    return inside && fits(value, bits) ? Status::ok() : Status::error("a relocation out of range");
  }
  Status write(size_t at, int64_t value, int bits) {
    auto bytes = static_cast<size_t>(bits / 8);
    LOCUTION_RETURN_IF_ERROR(checkField(at, bytes, value, bits));
    std::memcpy(blob_.data() + at, &value, bytes);
    return Status::ok();
  }
  void patch(size_t at, uint32_t mask, uint32_t field) {
    uint32_t word = 0;
    std::memcpy(&word, blob_.data() + at, sizeof word);
    word = (word & ~mask) | (field & mask);
    std::memcpy(blob_.data() + at, &word, sizeof word);
  }
  /// A distance in words in `bits` bits from bit `shift`: loads and branches.
  Status patchWords(size_t at, int64_t distance, int bits, int shift) {
    if (distance % 4 != 0) return Status::error("a relocation to an address that is no multiple of 4");
    LOCUTION_RETURN_IF_ERROR(checkField(at, 4, distance / 4, bits));
    uint32_t mask = ((uint32_t{1} << bits) - 1) << shift;
    patch(at, mask, static_cast<uint32_t>(distance / 4) << shift);
    return Status::ok();
  }
  /// ADR: 21 bits of bytes, the lowest two apart.
  Status patchAdr(size_t at, int64_t distance) {
    LOCUTION_RETURN_IF_ERROR(checkField(at, 4, distance, 21));
    auto bits = static_cast<uint32_t>(distance);
    patch(at, 0x60ffffe0U, (bits & 3) << 29 | ((bits >> 2) & 0x7ffff) << 5);
    return Status::ok();
  }

  std::span<const std::byte> object_;
  std::string entry_;
  Elf64_Ehdr header_{};
  std::vector<Section> sections_;
  const Section* symbols_ = nullptr;
  std::vector<std::byte> blob_;
};

}  // namespace

Result<std::vector<std::byte>> linkBlob(std::span<const std::byte> object, const std::string& entry) {
  return Linker(object, entry).link();
}

}  // namespace locution::targets::cpu
