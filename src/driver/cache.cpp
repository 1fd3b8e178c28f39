#include "driver/cache.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "driver/compiler.h"
#include "driver/language_model.h"
#include "driver/scheduling.h"
#include "hostops/byte_stream.h"
#include "runtime/format.h"
#include "support/hash.h"

namespace locution::driver {

namespace {

namespace fs = std::filesystem;

constexpr char kMagic[] = "locution recipe 1";
// A temporary file this old was left behind by a process that died.
constexpr auto kStale = std::chrono::hours(1);

// Keys name files that nobody compares with what they stand for, so 128 bits.
class Hasher {
 public:
  Hasher() { XXH3_128bits_reset(&state_); }
  void bytes(const void* data, size_t size) { XXH3_128bits_update(&state_, data, size); }
  template <typename T>
  void number(T value) {
    static_assert(std::is_arithmetic_v<T>);
    bytes(&value, sizeof value);
  }
  // With its length, so that ("a", "bc") and ("ab", "c") differ.
  void text(const std::string& s) {
    number(static_cast<uint64_t>(s.size()));
    bytes(s.data(), s.size());
  }
  /// False when the file can't be read.
  bool file(const std::string& path) {
    std::error_code error;
    uint64_t size = fs::file_size(path, error);
    if (error) return false;
    auto mapped = mapFile(path, 0, size);
    if (!mapped.isOk()) return false;
    number(size);
    bytes((*mapped)->data(), size);
    return true;
  }
  std::string digits() const {
    XXH128_hash_t h = XXH3_128bits_digest(&state_);
    return hexDigits(h.high64) + hexDigits(h.low64);
  }

 private:
  XXH3_state_t state_;
};

// Of this compiler's code and of LLVM's: any change of either may change what is compiled.
struct LoadedCode {
  uintptr_t inside;
  std::string text;
};
int noteBuild(dl_phdr_info* info, size_t, void* out) {
  auto* code = static_cast<LoadedCode*>(out);
  const std::string name = info->dlpi_name ? info->dlpi_name : "";
  bool isWanted = name.find("libLLVM") != std::string::npos;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& p = info->dlpi_phdr[i];
    uintptr_t begin = info->dlpi_addr + p.p_vaddr;
    if (p.p_type == PT_LOAD && code->inside >= begin && code->inside < begin + p.p_memsz) isWanted = true;
  }
  if (!isWanted) return 0;
  bool found = false;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& p = info->dlpi_phdr[i];
    if (p.p_type != PT_NOTE) continue;
    const auto* at = reinterpret_cast<const char*>(info->dlpi_addr + p.p_vaddr);
    const char* end = at + p.p_memsz;
    while (at + sizeof(ElfW(Nhdr)) <= end) {
      ElfW(Nhdr) note;
      std::memcpy(&note, at, sizeof note);
      const char* owner = at + sizeof note;
      const char* id = owner + (note.n_namesz + 3) / 4 * 4;
      if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && std::memcmp(owner, "GNU", 4) == 0) {
        code->text.append(id, note.n_descsz);
        found = true;
      }
      at = id + (note.n_descsz + 3) / 4 * 4;
    }
  }
  if (!found) {  // linked without an id: the file's contents
    Hasher h;
    h.file(name.empty() ? "/proc/self/exe" : name);
    code->text += h.digits();
  }
  return 0;
}
std::string buildIdentity() {
  LoadedCode code{reinterpret_cast<uintptr_t>(&noteBuild), compilerVersion() + "\n"};
  dl_iterate_phdr(noteBuild, &code);
  return code.text;
}

struct Recipe {
  CacheInputs inputs;
  std::vector<std::string> warnings;
};

void writeList(hostops::ByteWriter& out, const std::vector<std::string>& list) {
  out.number(static_cast<uint64_t>(list.size()));
  for (const std::string& s : list) out.text(s);
}
std::vector<std::string> readList(hostops::ByteReader& in) {
  std::vector<std::string> out;
  for (size_t n = in.count(8); n > 0 && !in.failed(); --n) out.push_back(in.text());
  return out;
}

std::string serialise(const Recipe& r) {
  hostops::ByteWriter out;
  out.text(kMagic);
  writeList(out, r.inputs.files);
  writeList(out, r.inputs.values);
  writeList(out, r.warnings);
  out.number(hashText(out.bytes()));
  return out.take();
}
std::optional<Recipe> parseRecipe(const std::string& bytes) {
  if (bytes.size() < 8) return std::nullopt;
  const std::string body = bytes.substr(0, bytes.size() - 8);
  hostops::ByteReader in(bytes);
  Recipe r;
  if (in.text() != kMagic) return std::nullopt;
  r.inputs.files = readList(in);
  r.inputs.values = readList(in);
  r.warnings = readList(in);
  auto checksum = in.number<uint64_t>();
  if (in.failed() || !in.atEnd() || checksum != hashText(body)) return std::nullopt;
  return r;
}

std::optional<std::string> readWhole(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  std::ostringstream out;
  out << file.rdbuf();
  return file.bad() ? std::nullopt : std::optional<std::string>(out.str());
}

int64_t nanoseconds(const timespec& t) { return int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec; }

void touch(const std::string& path) { utimensat(AT_FDCWD, path.c_str(), nullptr, 0); }

void remove(const std::string& path) {
  std::error_code ignored;
  fs::remove(path, ignored);
}

bool compilesOnFirstUse(const runtime::Executable& e) {
  return std::any_of(e.regions.begin(), e.regions.end(), [](const runtime::Region& r) {
    return r.code ? compilesOnFirstUse(*r.code) : r.compiler != nullptr;
  });
}

int64_t codeBytes(const runtime::Executable& e) {
  auto sum = static_cast<int64_t>(e.code.size());
  for (const runtime::Region& r : e.regions)
    if (r.code) sum += codeBytes(*r.code);
  return sum;
}

// Warnings about the file start with its name, which is no part of what they are about.
constexpr char kModelMark = '\x01';
std::vector<std::string> renamed(std::vector<std::string> warnings, const std::string& from, const std::string& to) {
  for (std::string& w : warnings)
    if (!from.empty() && w.compare(0, from.size(), from) == 0) w = to + w.substr(from.size());
  return warnings;
}

}  // namespace

Result<ModelCache> ModelCache::open(const std::string& model, const CompileOptions& options, const TargetSpec& target) {
  std::error_code error;
  const fs::path folder = options.cacheFolder;
  if (!fs::is_directory(folder, error)) {
    if (folder.has_parent_path()) fs::create_directories(folder.parent_path(), error);
    // Entries hold code that will be run: nobody else may put any there.
    if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
      return Status::error("--cache " + options.cacheFolder + ": " + std::strerror(errno));
    if (!fs::is_directory(folder, error))
      return Status::error("--cache " + options.cacheFolder + ": it is not a folder");
  }
  if (access(folder.c_str(), W_OK | X_OK) != 0)
    return Status::error("--cache " + options.cacheFolder + ": " + std::strerror(errno));
  return ModelCache(model, options, target);
}

ModelCache::ModelCache(std::string model, const CompileOptions& options, const TargetSpec& target)
    : model_(std::move(model)), options_(options), target_(target), folder_(options.cacheFolder) {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  openedNs_ = nanoseconds(now);
  fingerprint_ = fingerprint();
}

std::string ModelCache::fingerprint() const {
  Hasher h;
  h.text(kMagic);
  h.number(runtime::kFormatVersion);
  h.text(buildIdentity());
  h.text(target_.str());
  h.text(options_.scheduler);
  if (!options_.scheduleFile.empty() && !h.file(options_.scheduleFile)) return "";
  if (!options_.tlmWeights.empty() && !h.file(options_.tlmWeights)) return "";
  // Whether it fits the weights hangs on both files. Other schedulers read none.
  if (const std::string adapter = Scheduling::readsAdapter(options_.scheduler) ? adapterFile(options_) : "";
      !adapter.empty() && !h.file(adapter))
    return "";
  h.number(options_.foldCapBytes);
  h.number(static_cast<uint64_t>(options_.disabledPasses.size()));
  for (const std::string& pass : options_.disabledPasses) h.text(pass);
  h.number(static_cast<uint64_t>(options_.inputShapes.size()));
  for (const auto& [name, shape] : options_.inputShapes) {
    h.text(name);
    h.text(shape.str());
  }
  return h.file(model_) ? h.digits() : "";
}

// Of the whole: nullopt when a file can't be read or a value is not given; then the compilation says what is wrong.
std::optional<std::string> ModelCache::keyOf(const CacheInputs& inputs) const {
  Hasher h;
  h.text(fingerprint_);
  const fs::path folder = fs::path(model_).parent_path();
  for (const std::string& name : inputs.files) {
    h.text(name);
    if (!h.file((folder / name).string())) return std::nullopt;
  }
  for (const std::string& name : inputs.values) {
    auto it = options_.inputValues.find(name);
    if (it == options_.inputValues.end() || it->second.dtype() == DType::String) return std::nullopt;
    const Tensor& t = it->second;
    h.text(name);
    h.number(static_cast<int32_t>(t.dtype()));
    h.number(static_cast<uint64_t>(t.dims().size()));
    for (int64_t d : t.dims()) h.number(d);
    h.bytes(t.raw(), t.bytes());
  }
  return h.digits();
}

std::optional<ModelCache::Entry> ModelCache::find() const {
  if (fingerprint_.empty()) return std::nullopt;
  const std::string recipePath = folder_ + "/" + fingerprint_ + ".recipe";
  std::optional<std::string> bytes = readWhole(recipePath);
  if (!bytes) return std::nullopt;
  std::optional<Recipe> recipe = parseRecipe(*bytes);
  if (!recipe) {
    remove(recipePath);
    return std::nullopt;
  }
  std::optional<std::string> key = keyOf(recipe->inputs);
  if (!key) return std::nullopt;
  const std::string path = folder_ + "/" + *key + ".loc";
  std::error_code error;
  if (!fs::exists(path, error)) return std::nullopt;
  auto mapped = runtime::mapExecutable(path);
  auto read = mapped.isOk() ? runtime::readExecutable(*mapped) : mapped.status();
  if (!read.isOk() || !((*read)->target == target_)) {
    remove(path);
    return std::nullopt;
  }
  touch(recipePath);
  touch(path);
  return Entry{*read, renamed(recipe->warnings, std::string(1, kModelMark), model_)};
}

// A file that was written while it was compiled from may have been hashed before and read after, or the other way round.
bool ModelCache::isUnchanged(const CacheInputs& inputs) const {
  constexpr int64_t kClockLagNs = 20'000'000;  // files get the time of the last tick
  const fs::path folder = fs::path(model_).parent_path();
  std::vector<std::string> all = {model_};
  for (const std::string& name : inputs.files) all.push_back((folder / name).string());
  return std::all_of(all.begin(), all.end(), [&](const std::string& path) {
    struct stat info {};
    return stat(path.c_str(), &info) == 0 && nanoseconds(info.st_ctim) < openedNs_ - kClockLagNs;
  });
}

Status ModelCache::store(const CacheInputs& inputs, const Entry& entry) const {
  const runtime::Executable& e = *entry.executable;
  if (fingerprint_.empty() || compilesOnFirstUse(e) || e.weightBytes() + codeBytes(e) > options_.cacheLimitBytes)
    return Status::ok();
  std::optional<std::string> key = keyOf(inputs);
  if (!key || !isUnchanged(inputs)) return Status::ok();
  LOCUTION_RETURN_IF_ERROR(runtime::writeExecutable(e, folder_ + "/" + *key + ".loc"));
  const Recipe recipe{inputs, renamed(entry.warnings, model_, std::string(1, kModelMark))};
  const std::string path = folder_ + "/" + fingerprint_ + ".recipe", part = path + ".tmp" + std::to_string(gettid());
  std::ofstream file(part, std::ios::binary | std::ios::trunc);
  file << serialise(recipe);
  file.close();
  std::error_code error;
  if (file) fs::rename(part, path, error);
  if (!file || error) {
    remove(part);
    return Status::error("cannot write " + path);
  }
  return evict();
}

Status ModelCache::evict() const {
  // One process at a time, so that two don't both make room for the same entry.
  const int lock = ::open((folder_ + "/lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (lock < 0) return Status::error("cannot write " + folder_ + "/lock: " + std::strerror(errno));
  while (flock(lock, LOCK_EX) != 0 && errno == EINTR) {
  }
  struct File {
    fs::path path;
    fs::file_time_type used;
    int64_t bytes;
  };
  std::vector<File> files;
  int64_t total = 0;
  std::error_code error;
  for (fs::directory_iterator it(folder_, error), end; !error && it != end; it.increment(error)) {
    std::error_code gone;  // another process may have replaced it
    const std::string name = it->path().filename().string();
    const fs::file_time_type used = it->last_write_time(gone);
    const auto bytes = static_cast<int64_t>(gone ? 0 : it->file_size(gone));
    if (gone) continue;
    if (name.find(".tmp") != std::string::npos) {
      if (fs::file_time_type::clock::now() - used > kStale) remove(it->path().string());
      continue;
    }
    if (it->path().extension() != ".loc" && it->path().extension() != ".recipe") continue;
    files.push_back({it->path(), used, bytes});
    total += bytes;
  }
  std::sort(files.begin(), files.end(),
            [](const File& a, const File& b) { return a.used != b.used ? a.used < b.used : a.path < b.path; });
  for (const File& f : files) {
    if (total <= options_.cacheLimitBytes) break;
    remove(f.path.string());
    total -= f.bytes;
  }
  close(lock);
  return Status::ok();
}

}  // namespace locution::driver
