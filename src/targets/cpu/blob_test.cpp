// Relocations by hand: what each writes, and which are refused.
#include "targets/cpu/blob.h"

#include <elf.h>
#include <gtest/gtest.h>

#include <cstring>

#include "core/target.h"
#include "targets/cpu/kernel_test_util.h"

namespace locution::targets::cpu {
namespace {

/// One relocation in .text, at its second word, against .rodata or a place in .text.
struct Case {
  uint16_t machine = EM_AARCH64;
  uint32_t type = 0;
  int64_t addend = 0;
  bool againstText = false;
  uint64_t word = 0;       ///< the bytes that are patched, before
  size_t textBytes = 16;   ///< so that .rodata lies at the next multiple of 16
  bool undefined = false;  ///< an outside symbol besides
};

/// .text of `textBytes` with "kernel" at 0, .rodata of 8 bytes, and their tables.
std::vector<std::byte> object(const Case& c) {
  std::string names = std::string("\0.text\0.rodata\0.rela.text\0.symtab\0.strtab\0", 42);
  std::string symbolNames = std::string("\0kernel\0memcpy\0", 15);
  auto nameOf = [&](const char* name) { return static_cast<Elf64_Word>(names.find(name)); };
  std::string text(c.textBytes, '\0');
  std::memcpy(text.data() + 4, &c.word, sizeof c.word);
  std::vector<Elf64_Sym> symbols(4);
  symbols[1].st_info = symbols[2].st_info = ELF64_ST_INFO(STB_LOCAL, STT_SECTION);
  symbols[1].st_shndx = 1;
  symbols[2].st_shndx = 2;
  symbols[3].st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
  symbols[3].st_shndx = 1;
  symbols[3].st_name = 1;
  if (c.undefined) {
    symbols.emplace_back();
    symbols[4].st_info = ELF64_ST_INFO(STB_GLOBAL, STT_NOTYPE);
    symbols[4].st_name = 8;
  }
  Elf64_Rela rela{4, ELF64_R_INFO(c.againstText ? uint64_t{1} : uint64_t{2}, c.type), c.addend};

  std::vector<std::byte> out(sizeof(Elf64_Ehdr));
  std::vector<Elf64_Shdr> headers(1);
  auto add = [&](const char* name, Elf64_Word type, Elf64_Xword flags, const void* data, size_t size, Elf64_Word link) {
    Elf64_Shdr h{};
    h.sh_name = nameOf(name);
    h.sh_type = type;
    h.sh_flags = flags;
    h.sh_offset = out.size();
    h.sh_size = size;
    h.sh_link = link;
    h.sh_addralign = 8;
    headers.push_back(h);
    const auto* bytes = static_cast<const std::byte*>(data);
    out.insert(out.end(), bytes, bytes + size);
  };
  const char constants[] = "constant";
  add(".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, text.data(), text.size(), 0);
  add(".rodata", SHT_PROGBITS, SHF_ALLOC, constants, 8, 0);
  add(".rela.text", SHT_RELA, 0, &rela, sizeof rela, 4);
  headers.back().sh_info = 1;
  add(".symtab", SHT_SYMTAB, 0, symbols.data(), symbols.size() * sizeof(Elf64_Sym), 5);
  add(".strtab", SHT_STRTAB, 0, symbolNames.data(), symbolNames.size(), 0);
  add(".strtab", SHT_STRTAB, 0, names.data(), names.size(), 0);
  Elf64_Ehdr e{};
  std::memcpy(e.e_ident, ELFMAG, SELFMAG);
  e.e_machine = c.machine;
  e.e_shoff = out.size();
  e.e_shnum = static_cast<Elf64_Half>(headers.size());
  e.e_shstrndx = 6;
  std::memcpy(out.data(), &e, sizeof e);
  const auto* table = reinterpret_cast<const std::byte*>(headers.data());
  out.insert(out.end(), table, table + headers.size() * sizeof(Elf64_Shdr));
  return out;
}

/// The patched bytes; or the error's text in `error`.
uint64_t linked(const Case& c, std::string* error = nullptr) {
  auto blob = linkBlob(object(c), "kernel");
  if (!blob.isOk()) {
    EXPECT_TRUE(error) << blob.status().message();
    if (error) *error = blob.status().message();
    return 0;
  }
  uint64_t word = 0;
  std::memcpy(&word, blob->data() + 4, sizeof word);
  return word;
}

std::string errorOf(const Case& c) {
  std::string error;
  linked(c, &error);
  return error;
}

// .rodata is 12 bytes behind the patched word.
TEST(Blob, Aarch64AddressesAndLoads) {
  // adr x8, .+12 and .+13: the lowest two bits lie apart.
  EXPECT_EQ(linked({.type = R_AARCH64_ADR_PREL_LO21, .word = 0x10000008}), 0x10000068U);
  EXPECT_EQ(linked({.type = R_AARCH64_ADR_PREL_LO21, .addend = 1, .word = 0x10000008}), 0x30000068U);
  EXPECT_EQ(linked({.type = R_AARCH64_ADR_PREL_LO21, .addend = -16, .word = 0x10000008}), 0x10ffffe8U);
  // ldr q0, .+12
  EXPECT_EQ(linked({.type = R_AARCH64_LD_PREL_LO19, .word = 0x9c000000}), 0x9c000060U);
  // b.eq, tbz, b, bl: to the start of .text, 4 bytes before.
  EXPECT_EQ(linked({.type = R_AARCH64_CONDBR19, .againstText = true, .word = 0x54000000}), 0x54ffffe0U);
  EXPECT_EQ(linked({.type = R_AARCH64_TSTBR14, .againstText = true, .word = 0x36000000}), 0x3607ffe0U);
  EXPECT_EQ(linked({.type = R_AARCH64_JUMP26, .againstText = true, .word = 0x14000000}), 0x17ffffffU);
  EXPECT_EQ(linked({.type = R_AARCH64_CALL26, .addend = 8, .againstText = true, .word = 0x94000000}), 0x94000001U);
  EXPECT_EQ(linked({.type = R_AARCH64_PREL32}), 12U);
  EXPECT_EQ(linked({.type = R_AARCH64_PREL64, .addend = -16}), ~uint64_t{3});
}

TEST(Blob, Aarch64Reach) {
  // 1 MiB each way of ADR: the word is at 4, .rodata behind .text.
  EXPECT_EQ(linked({.type = R_AARCH64_ADR_PREL_LO21, .addend = -13, .word = 0x10000008, .textBytes = 1 << 20}),
            0x707fff68U);
  EXPECT_EQ(errorOf({.type = R_AARCH64_ADR_PREL_LO21, .addend = 4, .textBytes = 1 << 20}), "a relocation out of range");
  EXPECT_EQ(errorOf({.type = R_AARCH64_TSTBR14, .textBytes = 1 << 16}), "a relocation out of range");
  EXPECT_EQ(errorOf({.type = R_AARCH64_LD_PREL_LO19, .addend = 2}),
            "a relocation to an address that is no multiple of 4");
}

TEST(Blob, RefusesWhatNeedsABaseAddress) {
  for (uint32_t type : {R_AARCH64_ADR_PREL_PG_HI21, R_AARCH64_ADR_PREL_PG_HI21_NC, R_AARCH64_ADR_GOT_PAGE})
    EXPECT_EQ(errorOf({.type = type}), "an address by page (relocation type " + std::to_string(type) +
                                           "): position-independent code knows distances alone");
  EXPECT_EQ(errorOf({.type = R_AARCH64_ABS64}),
            "relocation type 257 of machine 183 is not position-independent or not supported");
  EXPECT_EQ(errorOf({.type = R_AARCH64_ADD_ABS_LO12_NC}),
            "relocation type 277 of machine 183 is not position-independent or not supported");
  EXPECT_EQ(errorOf({.machine = EM_X86_64, .type = R_X86_64_64}),
            "relocation type 1 of machine 62 is not position-independent or not supported");
  EXPECT_EQ(errorOf({.type = R_AARCH64_PREL32, .undefined = true}), "the code needs an outside symbol, memcpy");
}

TEST(Blob, X86) {
  EXPECT_EQ(linked({.machine = EM_X86_64, .type = R_X86_64_PC32, .addend = -4}), 8U);
  EXPECT_EQ(linked({.machine = EM_X86_64, .type = R_X86_64_PLT32, .addend = -4, .againstText = true}), 0xfffffff8U);
}

// A kernel with constants of every kind links for AArch64: nothing outside, nothing absolute.
TEST(Blob, Aarch64KernelsAreWhole) {
  for (const char* cpu : {"generic", "cortex-a76", "neoverse-v2"}) {
    auto target = makeTarget("aarch64-linux-gnu", cpu, 1);
    ASSERT_TRUE(target) << target.status().message();
    auto compiler = makeKernelCompiler(*target);
    for (DType type : {DType::F32, DType::F16, DType::BF16, DType::F8E4M3FN, DType::I8, DType::I32}) {
      constexpr int64_t kCount = 1003;
      int lanes = target->lanes(4);
      VectorLoop l(kCount, lanes);
      auto in = loop::makeBuffer("in", {type, 1}, {kCount});
      auto out = loop::makeBuffer("out", {DType::F32, 1}, {kCount});
      loop::Function f;
      f.name = "constants";
      f.params = {in, out};
      f.outputCount = 1;
      loop::Expr x = loop::cast(DType::F32, loop::load(in, {l.at}, l.mask));
      f.body = l.over(loop::store(
          out, {l.at}, loop::call("exp", {x * loop::broadcast(loop::floatImm(DType::F32, 0.1), lanes)}), l.mask));
      auto code = compiler->compile(f);
      ASSERT_TRUE(code) << cpu << ", " << dtypeName(type) << ": " << code.status().message();
      EXPECT_GT(code->bytes.size(), 100U);
      auto text = compiler->show(f, "asm");
      ASSERT_TRUE(text);
      EXPECT_EQ(text->find("\tadrp\t"), std::string::npos) << *text;
      EXPECT_EQ(text->find("\tbl\t"), std::string::npos) << *text;
    }
  }
}

}  // namespace
}  // namespace locution::targets::cpu
