#include "targets/cpu/caches.h"

#include <fstream>
#include <string>

#include "support/strings.h"

namespace locution::targets::cpu {
namespace {

std::string firstWord(const std::string& path) {
  std::ifstream in(path);
  std::string word;
  in >> word;
  return word;
}

/// "48K", "2M" as bytes; 0 when it isn't one.
int64_t sizeOf(const std::string& text) {
  int64_t value = 0;
  for (char c : text) {
    if (c >= '0' && c <= '9') value = value * 10 + (c - '0');
    if (c == 'K') value <<= 10;
    if (c == 'M') value <<= 20;
    if (c == 'G') value <<= 30;
    if (value > int64_t{1} << 40) return 0;
  }
  return value;
}

/// How many CPUs "0-3,8" names; 1 when it can't be read.
int64_t cpuCount(const std::string& list) {
  int64_t count = 0;
  for (const std::string& part : splitText(list, ',')) {
    auto ends = splitText(part, '-');
    if (ends.empty() || ends[0].empty()) continue;
    int64_t first = sizeOf(ends[0]);
    count += (ends.size() > 1 ? sizeOf(ends[1]) : first) - first + 1;
  }
  return count > 0 ? count : 1;
}

}  // namespace

void readCacheSizes(TargetSpec* spec) {
  const std::string cpu = "/sys/devices/system/cpu/cpu0/";
  int64_t siblings = cpuCount(firstWord(cpu + "topology/thread_siblings_list"));
  for (int i = 0; i < 8; ++i) {
    std::string cache = cpu + "cache/index" + std::to_string(i) + "/";
    std::string level = firstWord(cache + "level");
    std::string type = firstWord(cache + "type");
    int64_t bytes = sizeOf(firstWord(cache + "size"));
    if (level.empty()) return;
    if (bytes <= 0 || type == "Instruction") continue;
    int64_t cores = std::max<int64_t>(1, cpuCount(firstWord(cache + "shared_cpu_list")) / siblings);
    if (level == "1") spec->l1Bytes = bytes;
    if (level == "2") spec->l2Bytes = bytes / cores;
    if (level == "3") spec->l3Bytes = bytes / cores;
  }
}

}  // namespace locution::targets::cpu
