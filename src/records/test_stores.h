// For tests: the same body over both back ends. The PostgreSQL server is the test's own: made in a temporary folder, on a socket there,
// ended with the test.
#pragma once

#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "records/store.h"
#include "support/hash.h"

namespace locution::records::testing {

/// A folder that goes when this does.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

class TestServer {
 public:
  /// One for the whole test program, started on first use.
  static TestServer& shared();
  ~TestServer();
  TestServer(const TestServer&) = delete;
  TestServer& operator=(const TestServer&) = delete;
  /// Why there is none; empty where it runs. Only a missing package is a reason to skip a test.
  const std::string& missing() const { return missing_; }
  /// A database that nobody has used.
  std::string freshDatabase();
  std::string uri(const std::string& database) const;
  /// Runs SQL outside of any store.
  void execute(const std::string& database, const std::string& sql) const;
  /// Ends the server at once, as a crash does, and starts it again.
  void crash();

 private:
  TestServer();
  void start();
  int run(const std::vector<std::string>& command, bool wait) const;
  std::string folder_, missing_;
  int owner_ = getpid(), process_ = 0, databases_ = 0;
};

/// A place for records that is empty at first.
struct SqlitePlace {
  static std::string missing() { return ""; }
  std::string where() const { return folder / "records.db"; }
  TemporaryFolder folder;
};
struct PostgresPlace {
  static std::string missing() { return TestServer::shared().missing(); }
  const std::string& where() const { return uri; }
  std::string uri = TestServer::shared().freshDatabase();
};

/// Opens or fails the test's program.
std::unique_ptr<Store> opened(const std::string& where, Store::Open mode = Store::Open::Create);

/// Puts texts of three workloads, two targets, a machine and an incumbent once, and makes records that refer to them, each number
/// another one; equal numbers make equal records.
class RecordMaker {
 public:
  explicit RecordMaker(Store& store);
  Record operator()(int number) const;
  static constexpr int64_t kFirstTime = 1796000000;  ///< of number 0, the others follow by seconds
  std::vector<std::string> workloads, targets;
  std::string machine, incumbent;
};

inline TemporaryFolder::TemporaryFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "locution-records-XXXXXX").string();
  LOCUTION_CHECK(mkdtemp(name.data())) << name;
  path_ = name;
}

inline TemporaryFolder::~TemporaryFolder() {
  std::error_code error;
  std::filesystem::remove_all(path_, error);
}

/// Debian's folder of the newest server there is; empty when none is installed.
inline std::string serverPrograms() {
  std::string newest;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/usr/lib/postgresql", error)) {
    std::string programs = (entry.path() / "bin").string();
    if (std::filesystem::exists(programs + "/initdb", error) && programs > newest) newest = programs;
  }
  return newest;
}

inline TestServer& TestServer::shared() {
  static TestServer server;
  return server;
}

inline TestServer::TestServer() {
  std::string programs = serverPrograms();
  if (programs.empty()) {
    missing_ = "no PostgreSQL server is installed (Debian's package postgresql)";
    return;
  }
  std::string name = (std::filesystem::temp_directory_path() / "locution-postgres-XXXXXX").string();
  LOCUTION_CHECK(mkdtemp(name.data())) << name;
  folder_ = name;
  // The server refuses to run as root.
  if (geteuid() == 0) {
    const passwd* nobody = getpwnam("nobody");
    LOCUTION_CHECK(nobody && chown(folder_.c_str(), nobody->pw_uid, nobody->pw_gid) == 0) << folder_;
  }
  int code = run({programs + "/initdb", "-D", folder_ + "/data", "-U", "locution", "--auth=trust", "--no-sync",
                  "--encoding=UTF8", "--locale=C"},
                 true);
  LOCUTION_CHECK(code == 0) << "initdb failed with code " << code;
  start();
}

inline TestServer::~TestServer() {
  if (getpid() != owner_) return;  // a forked worker that ends
  if (process_) {
    kill(process_, SIGQUIT);
    waitpid(process_, nullptr, 0);
  }
  std::error_code error;
  if (!folder_.empty()) std::filesystem::remove_all(folder_, error);
}

inline void TestServer::start() {
  process_ = run({serverPrograms() + "/postgres", "-D", folder_ + "/data", "-k", folder_, "-c",
                  "listen_addresses=", "-c", "fsync=off", "-c", "max_connections=50"},
                 false);
  for (int tries = 0; tries < 600; ++tries) {
    // Its own client says when it answers.
    if (run({serverPrograms() + "/pg_isready", "-q", "-h", folder_, "-U", "locution"}, true) == 0) return;
    usleep(50000);
  }
  LOCUTION_CHECK(false) << "the server doesn't answer";
}

inline int TestServer::run(const std::vector<std::string>& command, bool wait) const {
  pid_t child = fork();
  LOCUTION_CHECK(child >= 0) << "fork failed";
  if (child == 0) {
    if (geteuid() == 0) {
      const passwd* nobody = getpwnam("nobody");
      if (setgroups(0, nullptr) != 0 || setgid(nobody->pw_gid) != 0 || setuid(nobody->pw_uid) != 0) _exit(126);
    }
    // A killed test takes its server along.
    prctl(PR_SET_PDEATHSIG, SIGQUIT);
    int null = open("/dev/null", O_RDWR);
    dup2(null, 0);
    dup2(null, 1);
    dup2(null, 2);
    (void)!chdir(folder_.c_str());
    std::vector<char*> arguments;
    for (const std::string& a : command) arguments.push_back(const_cast<char*>(a.c_str()));
    arguments.push_back(nullptr);
    setenv("LC_ALL", "C", 1);
    execv(arguments[0], arguments.data());
    _exit(127);
  }
  if (!wait) return child;
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

inline std::string TestServer::uri(const std::string& database) const {
  return "postgresql://locution@/" + database + "?host=" + folder_;
}

inline std::string TestServer::freshDatabase() {
  std::string name = "d" + std::to_string(getpid()) + "_" + std::to_string(databases_++);
  execute("postgres", "CREATE DATABASE " + name);
  return uri(name);
}

inline void TestServer::execute(const std::string& database, const std::string& sql) const {
  int code = run({serverPrograms() + "/psql", "-q", "-v", "ON_ERROR_STOP=1", "-h", folder_, "-U", "locution", "-d",
                  database, "-c", sql},
                 true);
  LOCUTION_CHECK(code == 0) << "psql failed with code " << code << ": " << sql;
}

inline void TestServer::crash() {
  kill(process_, SIGQUIT);
  waitpid(process_, nullptr, 0);
  start();
}

inline std::unique_ptr<Store> opened(const std::string& where, Store::Open mode) {
  auto store = Store::open(where, mode);
  LOCUTION_CHECK(store.isOk()) << store.status().message();
  return std::move(*store);
}

inline RecordMaker::RecordMaker(Store& store) {
  auto put = [&](TextKind kind, const std::string& text) {
    auto key = store.put(kind, text);
    LOCUTION_CHECK(key.isOk()) << key.status().message();
    return *key;
  };
  for (const char* text : {"contraction f32 s56 s56", "stream f32 s1000", "nest f32 s7 s13"})
    workloads.push_back(put(TextKind::Workload, text));
  for (const char* text : {"cpu = x86-64-v2\n", "cpu = x86-64-v3\n"}) targets.push_back(put(TextKind::Target, text));
  machine = put(TextKind::Machine, "model = Test CPU\n");
  incumbent = put(TextKind::Incumbent, "cpu v64 | contraction | direct mr=6");
}

inline Record RecordMaker::operator()(int number) const {
  Record r;
  r.workload = workloads[static_cast<size_t>(number) % 3];
  r.target = targets[static_cast<size_t>(number) % 2];
  r.machine = machine;
  r.sentence = "cpu v64 | contraction | direct mr=" + std::to_string(number % 20);
  r.proposer = number % 4 == 1 ? "analytic" : "random";
  r.seed = hashText("seed", static_cast<uint64_t>(number));
  r.model = number % 5 == 0 ? "resnet" : number % 5 == 1 ? "bert" : "";
  r.outcome = number % 10 == 3 ? Outcome::Wrong : Outcome::Ok;
  r.compiler = number % 7 == 0 ? "0.2.0" : "0.1.0";
  r.code = hexDigits(hashText("code", static_cast<uint64_t>(number % 20)));
  r.grammar = 1;
  r.vocabularyCount = 400;
  r.vocabulary = "0123456789abcdef";
  r.time = kFirstTime + number;
  if (r.outcome != Outcome::Ok) return r;
  for (int i = 0; i < 5; ++i) r.samples.push_back(1e-5 * (1 + static_cast<double>((number * 7 + i) % 100) / 300));
  r.incumbent = incumbent;
  r.ratio = *r.seconds() / 1.1e-5;
  r.spread = 0.01;
  return r;
}

}  // namespace locution::records::testing
