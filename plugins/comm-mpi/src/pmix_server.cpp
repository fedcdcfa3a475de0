// SPDX-License-Identifier: Apache-2.0
// PMIx 4: https://pmix.github.io, chapters on servers. Open MPI 4 takes its peers' addresses from the fence.
#include "pmix_server.hpp"

#include <pmix.h>
#include <pmix_server.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <string_view>

#include "triax/error.hpp"

namespace triax::comm_mpi {

namespace {

constexpr const char* kNamespace = "triax";

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

void describe_job(Infos& job, int ranks) {
  const std::string host = host_name();
  std::string peers;
  for (int rank = 0; rank < ranks; ++rank) peers += (rank ? "," : "") + std::to_string(rank);
  for (const char* key : {PMIX_UNIV_SIZE, PMIX_JOB_SIZE, PMIX_MAX_PROCS, PMIX_LOCAL_SIZE, PMIX_NODE_SIZE})
    job.number(key, static_cast<std::uint32_t>(ranks));
  job.number(PMIX_NUM_NODES, 1);
  job.string(PMIX_JOBID, kNamespace);
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

pmix_proc_t process_of(int rank) {
  pmix_proc_t out;
  PMIX_LOAD_PROCID(&out, kNamespace, static_cast<pmix_rank_t>(rank));
  return out;
}

} // namespace

std::shared_ptr<PmixServer> PmixServer::shared(int ranks) {
  static std::weak_ptr<PmixServer> running;
  std::shared_ptr<PmixServer> out = running.lock();
  if (!out) running = out = std::make_shared<PmixServer>(ranks);
  return out;
}

PmixServer::PmixServer(int ranks) {
  static pmix_server_module_t module{};
  module.client_connected2 = connected;
  module.client_finalized = finalized;
  module.abort = aborted;
  module.fence_nb = fence;
  check(PMIx_server_init(&module, nullptr, 0), "PMIx_server_init");
  Infos job;
  describe_job(job, ranks);
  check(PMIx_server_register_nspace(process_of(0).nspace, ranks, job.get().data(), job.get().size(), nullptr, nullptr),
        "PMIx_server_register_nspace");
  for (int rank = 0; rank < ranks; ++rank) {
    const pmix_proc_t process = process_of(rank);
    check(PMIx_server_register_client(&process, ::getuid(), ::getgid(), nullptr, nullptr, nullptr),
          "PMIx_server_register_client");
  }
}

PmixServer::~PmixServer() {
  PMIx_server_finalize();
}

std::vector<std::pair<std::string, std::string>> PmixServer::variables(int rank) const {
  char** variables = nullptr;
  const pmix_proc_t process = process_of(rank);
  check(PMIx_server_setup_fork(&process, &variables), "PMIx_server_setup_fork");
  // Without it, Open MPI 4 believes that each process was started alone. Any text of this form does.
  std::vector<std::pair<std::string, std::string>> out = {{"OMPI_MCA_orte_local_daemon_uri", "1.0;tcp://127.0.0.1:1"}};
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
