#include "runtime/format.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <vector>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "runtime/format_meta.h"

namespace locution::runtime {
namespace {

// As PNG's: not text, and broken by every careless transfer of text (line ends, the eighth bit).
constexpr char kMagic[8] = {'\x89', 'L', 'O', 'C', '\r', '\n', '\x1a', '\n'};
constexpr uint64_t kAlignment = 64;
constexpr uint64_t kPage = 4096;

enum SectionKind : uint32_t { kMeta = 1, kCode = 2, kConstants = 3 };
constexpr uint32_t kSectionCount = 3;

struct Header {
  char magic[8];
  uint32_t version;
  uint32_t sectionCount;
  uint64_t fileBytes;
  uint64_t checksum;
  uint8_t reserved[32];
};
struct Section {
  uint32_t kind;
  uint32_t reserved;
  uint64_t offset;
  uint64_t size;
};
static_assert(sizeof(Header) == 64 && sizeof(Section) == 24 && offsetof(Header, checksum) == 24);
constexpr uint64_t kTableEnd = sizeof(Header) + kSectionCount * sizeof(Section);

uint64_t roundUp(uint64_t value, uint64_t to) { return (value + to - 1) / to * to; }

// XXH3 of everything but the checksum itself.
uint64_t checksumOf(std::string_view file) {
  XXH3_state_t state;
  XXH3_64bits_reset(&state);
  constexpr size_t kBefore = offsetof(Header, checksum), kAfter = kBefore + sizeof(uint64_t);
  XXH3_64bits_update(&state, file.data(), kBefore);
  XXH3_64bits_update(&state, file.data() + kAfter, file.size() - kAfter);
  return XXH3_64bits_digest(&state);
}

// Writes a file front to back under a temporary name, hashing as it goes; renamed by `commit`, removed without it.
class NewFile {
 public:
  // No other thread of any process writes under that name, and this one writes one file at a time.
  explicit NewFile(std::string path) : path_(std::move(path)), temporary_(path_ + ".tmp" + std::to_string(gettid())) {}
  ~NewFile() {
    if (fd_ >= 0) close(fd_);
    if (made_) unlink(temporary_.c_str());
  }
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  Status open() {
    struct stat old {};
    if (stat(path_.c_str(), &old) == 0 && !S_ISREG(old.st_mode))
      return Status::error("cannot write " + path_ + ": it is not a regular file");
    fd_ = ::open(temporary_.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
    if (fd_ < 0) return failure();
    made_ = true;
    XXH3_64bits_reset(&hash_);
    return Status::ok();
  }
  Status write(const void* data, size_t size) {
    XXH3_64bits_update(&hash_, data, size);
    return writeUnhashed(data, size);
  }
  /// Zeros up to `offset`.
  Status padTo(uint64_t offset) {
    static constexpr char kZeros[kPage] = {};
    while (at_ < offset) LOCUTION_RETURN_IF_ERROR(write(kZeros, std::min(offset - at_, kPage)));
    return Status::ok();
  }
  Status writeUnhashed(const void* data, size_t size) {
    const char* from = static_cast<const char*>(data);
    at_ += size;
    while (size > 0) {
      ssize_t n = ::write(fd_, from, std::min(size, size_t{1} << 30));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return failure();
      from += n;
      size -= static_cast<size_t>(n);
    }
    return Status::ok();
  }
  Status commit() {
    uint64_t checksum = XXH3_64bits_digest(&hash_);
    if (pwrite(fd_, &checksum, sizeof checksum, offsetof(Header, checksum)) != sizeof checksum) return failure();
    int fd = std::exchange(fd_, -1);
    if (close(fd) != 0 || rename(temporary_.c_str(), path_.c_str()) != 0) return failure();
    made_ = false;
    return Status::ok();
  }

 private:
  Status failure() const { return Status::error("cannot write " + path_ + ": " + std::strerror(errno)); }
  std::string path_, temporary_;
  int fd_ = -1;
  bool made_ = false;
  uint64_t at_ = 0;
  XXH3_state_t hash_;
};

Status damaged(const std::string& why) { return Status::error("is damaged: " + why); }

// The three sections, in order, each within the file.
Status readSections(std::string_view file, std::vector<Section>& sections) {
  Header header;
  std::memcpy(&header, file.data(), sizeof header);
  if (header.sectionCount != kSectionCount || file.size() < kTableEnd)
    return damaged("its section table makes no sense");
  sections.resize(kSectionCount);
  std::memcpy(sections.data(), file.data() + sizeof(Header), kSectionCount * sizeof(Section));
  for (uint32_t i = 0; i < kSectionCount; ++i) {
    const Section& s = sections[i];
    if (s.kind != i + 1 || s.offset % kAlignment != 0 || s.offset < kTableEnd || s.offset > file.size() ||
        s.size > file.size() - s.offset)
      return damaged("its section table makes no sense");
  }
  return Status::ok();
}

// A line for each region, however deep, that has no code.
std::string openRegions(const Executable& executable) {
  std::string out;
  for (const Region& region : executable.regions)
    if (region.code)
      out += openRegions(*region.code);
    else if (region.compiler)
      out += "\n  " + region.name + ": " + region.open;
  return out;
}

}  // namespace

bool looksLikeExecutable(const void* data, size_t size) {
  return size >= sizeof kMagic && std::memcmp(data, kMagic, sizeof kMagic) == 0;
}

Result<std::shared_ptr<Storage>> mapExecutable(const std::string& path) {
  std::error_code error;
  uint64_t size = std::filesystem::file_size(path, error);
  if (error) return Status::error("cannot open " + path + ": " + error.message());
  if (size == 0) return Status::error(path + " is not a .loc file: it is empty");
  return mapFile(path, 0, size);
}

Result<std::shared_ptr<const Executable>> readExecutable(std::shared_ptr<Storage> bytes) {
  std::string_view file(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  if (!looksLikeExecutable(file.data(), file.size())) return Status::error("is not a .loc file");
  if (file.size() < sizeof(Header)) return damaged("it ends in the header");
  Header header;
  std::memcpy(&header, file.data(), sizeof header);
  if (header.version != kFormatVersion)
    return Status::error("has .loc format version " + std::to_string(header.version) +
                         ", and this Locution reads version " + std::to_string(kFormatVersion) +
                         ": compile the model again");
  if (header.fileBytes != file.size())
    return damaged("it has " + std::to_string(file.size()) + " bytes and should have " +
                   std::to_string(header.fileBytes));
  if (header.checksum != checksumOf(file)) return damaged("its checksum does not match its contents");
  std::vector<Section> sections;
  LOCUTION_RETURN_IF_ERROR(readSections(file, sections));
  const Section &meta = sections[0], &code = sections[1], &constants = sections[2];
  auto executable = readMeta(file.substr(meta.offset, meta.size), file.substr(code.offset, code.size), bytes,
                             constants.offset, constants.size);
  if (!executable.isOk()) return damaged(executable.status().message());
  return std::shared_ptr<const Executable>(std::move(*executable));
}

Status writeExecutable(const Executable& executable, const std::string& path) {
  std::string open = openRegions(executable);
  if (!open.empty())
    return Status::error("a compiled file can't hold what is compiled on first use:" + open +
                         "\nrun the model from its .onnx file instead");
  std::vector<const Executable*> all = allExecutables(executable);
  std::vector<Tensor> tensors;
  uint64_t codeBytes = 0;
  for (const Executable* e : all) {
    tensors.insert(tensors.end(), e->constants.begin(), e->constants.end());
    codeBytes = codeEnd(codeBytes, *e);
  }
  ConstantLayout layout = layOutConstants(tensors);
  std::string meta = writeMeta(executable, layout);
  Section table[kSectionCount] = {{kMeta, 0, roundUp(kTableEnd, kAlignment), meta.size()},
                                  {kCode, 0, 0, codeBytes},
                                  {kConstants, 0, 0, layout.bytes}};
  table[1].offset = roundUp(table[0].offset + table[0].size, kAlignment);
  table[2].offset = roundUp(table[1].offset + table[1].size, kPage);
  Header header{};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  header.version = kFormatVersion;
  header.sectionCount = kSectionCount;
  header.fileBytes = table[2].offset + table[2].size;

  NewFile file(path);
  LOCUTION_RETURN_IF_ERROR(file.open());
  LOCUTION_RETURN_IF_ERROR(file.write(&header, offsetof(Header, checksum)));
  LOCUTION_RETURN_IF_ERROR(file.writeUnhashed(&header.checksum, sizeof header.checksum));
  LOCUTION_RETURN_IF_ERROR(file.write(&header.reserved, sizeof header.reserved));
  LOCUTION_RETURN_IF_ERROR(file.write(table, sizeof table));
  LOCUTION_RETURN_IF_ERROR(file.padTo(table[0].offset));
  LOCUTION_RETURN_IF_ERROR(file.write(meta.data(), meta.size()));
  LOCUTION_RETURN_IF_ERROR(file.padTo(table[1].offset));
  uint64_t codeAt = table[1].offset;
  for (const Executable* e : all) {
    LOCUTION_RETURN_IF_ERROR(file.write(e->code.data(), e->code.size()));
    LOCUTION_RETURN_IF_ERROR(file.padTo(codeAt = codeEnd(codeAt, *e)));
  }
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& t = tensors[i];
    LOCUTION_RETURN_IF_ERROR(file.padTo(table[2].offset + layout.offsets[i]));
    if (t.dtype() != DType::String) LOCUTION_RETURN_IF_ERROR(file.write(t.raw(), t.bytes()));
  }
  LOCUTION_RETURN_IF_ERROR(file.padTo(header.fileBytes));
  return file.commit();
}

void resealForTest(std::string& file) {
  if (file.size() < sizeof(Header)) return;
  uint64_t size = file.size();
  std::memcpy(file.data() + offsetof(Header, fileBytes), &size, sizeof size);
  uint64_t checksum = checksumOf(file);
  std::memcpy(file.data() + offsetof(Header, checksum), &checksum, sizeof checksum);
}

}  // namespace locution::runtime
