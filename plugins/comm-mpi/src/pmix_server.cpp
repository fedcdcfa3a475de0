// SPDX-License-Identifier: Apache-2.0
// PMIx 4: https://pmix.github.io, chapters on servers. Open MPI 4 takes its peers' addresses from the fence.
#include "pmix_server.hpp"

#include <pmix.h>
#include <pmix_server.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <span>
#include <sstream>
#include <string_view>
#include <system_error>
#include <thread>

#include "triax/error.hpp"

namespace triax::comm_mpi {

namespace {

namespace fs = std::filesystem;

/// Unique on this machine: Open MPI names the shared memory of a job after it.
std::string new_namespace() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return text("{}{}-{}", kJobPrefix, ::getpid(), std::chrono::duration_cast<std::chrono::microseconds>(now).count());
}

void check(pmix_status_t status, const char* what) {
  if (status == PMIX_SUCCESS || status == PMIX_OPERATION_SUCCEEDED) return;
  throw Error(text("PMIx: {}: {}", what, PMIx_Error_string(status)), "comm-mpi", "start the ranks with mpirun instead");
}

pmix_status_t connected(const pmix_proc_t*, void*, pmix_info_t*, size_t, pmix_op_cbfunc_t, void*) {
  return PMIX_OPERATION_SUCCEEDED;
}
pmix_status_t finalized(const pmix_proc_t*, void*, pmix_op_cbfunc_t, void*) {
  return PMIX_OPERATION_SUCCEEDED;
}
/// MPI_Abort: the process ends, which the launcher sees.
pmix_status_t aborted(const pmix_proc_t*, void*, int, const char*, pmix_proc_t*, size_t, pmix_op_cbfunc_t, void*) {
  return PMIX_OPERATION_SUCCEEDED;
}
/// All ranks are here, so what the server has collected is complete.
pmix_status_t fence(const pmix_proc_t*, size_t, const pmix_info_t*, size_t, char* data, size_t bytes,
                    pmix_modex_cbfunc_t done, void* of) {
  done(PMIX_SUCCESS, data, bytes, of, nullptr, nullptr);
  return PMIX_SUCCESS;
}

/// The texts that processes have asked the server to log. PMIx's callbacks have no object of ours.
struct Messages {
  std::mutex mutex;
  Log* log = nullptr; // null: there is no server
  std::vector<std::jthread> answers;
};
Messages& messages() {
  static Messages out;
  return out;
}

/// The longest text of a record. Open MPI packs the name of a file, that of a topic, and the message.
std::string longest_text(std::string_view record) {
  std::string_view longest;
  for (std::size_t begin = 0; begin < record.size();) {
    std::size_t end = begin;
    while (end < record.size() && (record[end] == '\n' || static_cast<unsigned char>(record[end]) >= ' ')) ++end;
    if (end - begin > longest.size()) longest = record.substr(begin, end - begin);
    begin = end + 1;
  }
  return std::string(longest);
}

/// Rulers and empty lines carry nothing.
void log_lines(Log& log, pmix_rank_t rank, const std::string& message) {
  std::istringstream lines(message);
  for (std::string line; std::getline(lines, line);)
    if (line.find("----------") == std::string::npos && !line.empty()) log.warn("MPI, rank {}: {}", rank, line);
}

/// PMIx_Log of a process. Open MPI sends its explanations of what went wrong this way, and prints nothing.
void logged(const pmix_proc_t* process, const pmix_info_t* data, size_t count, const pmix_info_t*, size_t,
            pmix_op_cbfunc_t done, void* of) {
  Messages& to = messages();
  const std::lock_guard lock(to.mutex);
  if (to.log)
    for (const pmix_info_t& info : std::span(data, count)) {
      if (info.value.type == PMIX_STRING && info.value.data.string)
        log_lines(*to.log, process->rank, info.value.data.string);
      if (info.value.type == PMIX_BYTE_OBJECT && info.value.data.bo.bytes)
        log_lines(*to.log, process->rank, longest_text({info.value.data.bo.bytes, info.value.data.bo.size}));
    }
  // PMIx waits forever if it is answered before this function returns.
  to.answers.emplace_back([=] { done(PMIX_SUCCESS, of); });
}

std::string host_name() {
  std::array<char, 256> out{};
  ::gethostname(out.data(), out.size() - 1);
  return out.data();
}

/// A list of PMIx values, which PMIx copies.
class Infos {
 public:
  ~Infos() {
    for (pmix_info_t& info : infos_) PMIX_INFO_DESTRUCT(&info);
  }
  void add(const char* key, const void* value, pmix_data_type_t type) {
    infos_.emplace_back();
    PMIX_INFO_CONSTRUCT(&infos_.back());
    PMIX_INFO_LOAD(&infos_.back(), key, value, type);
  }
  void number(const char* key, std::uint32_t value) { add(key, &value, PMIX_UINT32); }
  void small(const char* key, std::uint16_t value) { add(key, &value, PMIX_UINT16); }
  void rank(const char* key, pmix_rank_t value) { add(key, &value, PMIX_PROC_RANK); }
  void string(const char* key, const std::string& value) { add(key, value.c_str(), PMIX_STRING); }
  std::vector<pmix_info_t>& get() { return infos_; }

 private:
  std::vector<pmix_info_t> infos_;
};

void add_rank(Infos& job, int rank, const std::string& host) {
  Infos of;
  of.rank(PMIX_RANK, static_cast<pmix_rank_t>(rank));
  of.small(PMIX_LOCAL_RANK, static_cast<std::uint16_t>(rank));
  of.small(PMIX_NODE_RANK, static_cast<std::uint16_t>(rank));
  of.number(PMIX_APPNUM, 0);
  of.number(PMIX_NODEID, 0);
  of.string(PMIX_HOSTNAME, host);
  pmix_data_array_t list{PMIX_INFO, of.get().size(), of.get().data()};
  job.add(PMIX_PROC_DATA, &list, PMIX_DATA_ARRAY);
}

void describe_job(Infos& job, int ranks, const std::string& name) {
  const std::string host = host_name();
  std::string peers;
  for (int rank = 0; rank < ranks; ++rank) peers += (rank ? "," : "") + std::to_string(rank);
  for (const char* key : {PMIX_UNIV_SIZE, PMIX_JOB_SIZE, PMIX_MAX_PROCS, PMIX_LOCAL_SIZE, PMIX_NODE_SIZE})
    job.number(key, static_cast<std::uint32_t>(ranks));
  job.number(PMIX_NUM_NODES, 1);
  job.string(PMIX_JOBID, name);
  job.string(PMIX_LOCAL_PEERS, peers);
  char *nodes = nullptr, *processes = nullptr;
  check(PMIx_generate_regex(host.c_str(), &nodes), "PMIx_generate_regex");
  check(PMIx_generate_ppn(peers.c_str(), &processes), "PMIx_generate_ppn");
  job.add(PMIX_NODE_MAP, nodes, PMIX_STRING);
  job.add(PMIX_PROC_MAP, processes, PMIX_STRING);
  std::free(nodes);
  std::free(processes);
  job.rank(PMIX_LOCALLDR, 0);
  for (int rank = 0; rank < ranks; ++rank) add_rank(job, rank, host);
}

pmix_proc_t process_of(const std::string& name, int rank) {
  pmix_proc_t out;
  PMIX_LOAD_PROCID(&out, name.c_str(), static_cast<pmix_rank_t>(rank));
  return out;
}

/// PMIx maps about 8 MiB of files. Without space for them, its threads deadlock.
void require_space(const fs::path& folder) {
  constexpr std::uintmax_t kNeeded = std::uintmax_t{16} << 20;
  const auto in_mib = [](std::uintmax_t bytes) { return bytes >> 20; };
  rlimit largest_file{};
  ::getrlimit(RLIMIT_FSIZE, &largest_file);
  if (largest_file.rlim_cur < kNeeded)
    throw Error(text("the file size limit of this process is {} MiB, but PMIx needs {} MiB",
                     in_mib(largest_file.rlim_cur), in_mib(kNeeded)),
                "comm-mpi", "raise the limit (ulimit -f), or start the ranks with mpirun");
  std::error_code unknown;
  const fs::space_info space = fs::space(folder, unknown);
  if (unknown || space.available >= kNeeded) return;
  throw Error(
      text("{} MiB are free, but PMIx needs {} MiB for its shared memory", in_mib(space.available), in_mib(kNeeded)),
      folder.string(), "free space there, or start the ranks with mpirun");
}

} // namespace

std::shared_ptr<PmixServer> PmixServer::shared(int ranks, Log& log) {
  static std::weak_ptr<PmixServer> running;
  std::shared_ptr<PmixServer> out = running.lock();
  if (!out) running = out = std::make_shared<PmixServer>(ranks, log);
  return out;
}

PmixServer::PmixServer(int ranks, Log& log) : namespace_(new_namespace()), folder_(namespace_) {
  messages().log = &log;
  static pmix_server_module_t module{};
  module.client_connected2 = connected;
  module.client_finalized = finalized;
  module.abort = aborted;
  module.fence_nb = fence;
  module.log = logged;
  const fs::path shared = folder_.path().empty() ? fs::temp_directory_path() : folder_.path();
  require_space(shared);
  Infos server; // removed with the job's folder, also after this process was killed
  server.string(PMIX_SERVER_TMPDIR, shared.string());
  check(PMIx_server_init(&module, server.get().data(), server.get().size()), "PMIx_server_init");
  Infos job;
  describe_job(job, ranks, namespace_);
  check(PMIx_server_register_nspace(process_of(namespace_, 0).nspace, ranks, job.get().data(), job.get().size(),
                                    nullptr, nullptr),
        "PMIx_server_register_nspace");
  for (int rank = 0; rank < ranks; ++rank) {
    const pmix_proc_t process = process_of(namespace_, rank);
    check(PMIx_server_register_client(&process, ::getuid(), ::getgid(), nullptr, nullptr, nullptr),
          "PMIx_server_register_client");
  }
}

PmixServer::~PmixServer() {
  {
    const std::lock_guard lock(messages().mutex);
    messages().log = nullptr;
    messages().answers.clear(); // joins them
  }
  PMIx_server_finalize();
}

std::vector<std::pair<std::string, std::string>> PmixServer::variables(int rank) const {
  char** variables = nullptr;
  const pmix_proc_t process = process_of(namespace_, rank);
  check(PMIx_server_setup_fork(&process, &variables), "PMIx_server_setup_fork");
  // Without it, Open MPI 4 believes that each process was started alone. Any text of this form does.
  std::vector<std::pair<std::string, std::string>> out = {{"OMPI_MCA_orte_local_daemon_uri", "1.0;tcp://127.0.0.1:1"}};
  // Shared memory and session folders: a setting of the user has precedence.
  for (const char* name : {"OMPI_MCA_btl_vader_backing_directory", "OMPI_MCA_orte_tmpdir_base"})
    if (!folder_.path().empty() && !std::getenv(name)) out.emplace_back(name, folder_.path().string());
  for (char** variable = variables; variable && *variable; ++variable) {
    const std::string_view whole = *variable;
    const std::size_t equals = whole.find('=');
    if (equals != std::string_view::npos) out.emplace_back(whole.substr(0, equals), whole.substr(equals + 1));
    std::free(*variable);
  }
  std::free(variables);
  return out;
}

} // namespace triax::comm_mpi
