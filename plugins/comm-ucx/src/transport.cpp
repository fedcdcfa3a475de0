// SPDX-License-Identifier: Apache-2.0
#include "transport.hpp"

#include <sched.h>
#include <unistd.h>

#include <array>
#include <fstream>

#include "context.hpp"
#include "triax/error.hpp"
#include "ucx_log.hpp"

namespace triax::comm_ucx {

namespace {

constexpr const char* kCudaUnsupported =
    "device_memory = \"direct\", but UCX on this machine does not support CUDA memory";
constexpr const char* kCudaUnsupportedHint =
    "use device_memory = \"staged\" (or \"auto\"), or a UCX built with CUDA, and cuda in transports";
constexpr int kMaxPolls = 256; // per poll: its caller checks deadlines and the abort flag in between
constexpr double kCloseS = 2;  // seconds for sent messages to leave

/// Shared memory works between processes with the same boot id and the same namespaces.
std::string host_text() {
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  for (const char* space : {"/proc/self/ns/ipc", "/proc/self/ns/pid"}) {
    std::array<char, 64> link{};
    const ssize_t length = ::readlink(space, link.data(), link.size());
    boot += " " + std::string(link.data(), length > 0 ? static_cast<std::size_t>(length) : 0);
  }
  return boot;
}

void require_cuda_memory(bool supported) {
  if (!supported) throw Error(kCudaUnsupported, "comm-ucx", kCudaUnsupportedHint);
}

} // namespace

Refusals Transport::supports(const Settings& settings, bool direct) {
  try {
    ucp_context_h context = make_context(settings);
    const bool supports_cuda = UcxMemory::supports_cuda(context);
    ucp_cleanup(context);
    if (direct) require_cuda_memory(supports_cuda);
    return {};
  } catch (const Error& error) {
    return make_refusal(ErrorCode::kUnsupported, {}, "comm-ucx: {}", error.message()).with_hint("{}", error.hint());
  }
}

Transport::Transport(Device& device, const Settings& settings, Log& log)
    : device_(device), log_(log), settings_(settings), host_(host_text()) {
  for (const std::string& note : settings.notes) log.info("comm-ucx: {}", note);
  try {
    open();
  } catch (...) {
    close();
    throw;
  }
  device_.add_source(*this);
}

void Transport::open() {
  context_ = make_context(settings_);
  const UcxLogCapture log(settings_.quiet);
  ucp_worker_params_t params{};
  params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  params.thread_mode = UCS_THREAD_MODE_SINGLE;
  check_ucx(ucp_worker_create(context_, &params, &worker_), "cannot create a worker", settings_, log);
  keep_unused_variables(log);
  report_unused_variables();
  idling_.start(settings_.wait, worker_);
  ucp_address_t* address = nullptr;
  std::size_t bytes = 0;
  check_ucx(ucp_worker_get_address(worker_, &address, &bytes), "cannot get the worker's address", settings_, log);
  address_.assign(reinterpret_cast<const char*>(address), bytes);
  ucp_worker_release_address(worker_, address);
  if (device_.kind() == DeviceKind::cuda) prepare_device_memory();
}

void Transport::report_unused_variables() {
  if (!settings_.logs || !settings_.quiet) return; // UCX's own log has them
  if (const std::string unused = take_unused_variables(); !unused.empty())
    log_.warn("comm-ucx: unknown UCX environment variables: {}; correct or unset them", unused);
}

void Transport::prepare_device_memory() {
  const bool supports_cuda = UcxMemory::supports_cuda(context_);
  if (settings_.device_memory == DeviceMemory::direct) require_cuda_memory(supports_cuda);
  const bool direct = supports_cuda && settings_.device_memory != DeviceMemory::staged;
  staging_.emplace(device_, settings_.staging_bytes, direct ? settings_.staging_bytes : 0);
  if (direct) ucx_memory_.emplace(staging_->stream());
  if (settings_.logs) {
    log_.info("comm-ucx: transfers GPU memory {} (device_memory = \"{}\")",
              direct ? "directly" : "through pinned host memory", memory_word());
  }
}

Transport::~Transport() {
  device_.remove_source(*this);
  close();
}

void Transport::close() noexcept {
  // Let sent messages leave first. Not for endpoints that failed, nor after a peer was lost.
  const Deadline deadline = deadline_in(skips_flush_ || retired_ ? 0 : kCloseS);
  for (const auto& endpoint : endpoints_) {
    if (retired_) break;
    ucp_request_param_t param{};
    param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
    param.flags = endpoint->status == UCS_OK ? 0 : UCP_EP_CLOSE_FLAG_FORCE;
    void* closing = ucp_ep_close_nbx(endpoint->handle, &param);
    if (!UCS_PTR_IS_PTR(closing)) continue;
    while (ucp_request_check_status(closing) == UCS_INPROGRESS) {
      if (ucp_worker_progress(worker_) != 0) continue;
      if (Clock::now() >= deadline) break;
      sched_yield();
    }
    ucp_request_free(closing);
  }
  if (worker_) ucp_worker_destroy(worker_);
  if (context_) ucp_cleanup(context_);
}

Endpoint& Transport::connect(std::string_view address, std::string_view host, int rank) {
  for (const auto& endpoint : endpoints_) {
    if (endpoint->address == address) return *endpoint;
  }
  auto endpoint = std::make_unique<Endpoint>(Endpoint{std::string(address), nullptr, UCS_OK, this});
  ucp_ep_params_t params{};
  params.field_mask =
      UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
  params.address = reinterpret_cast<const ucp_address_t*>(endpoint->address.data());
  params.err_handler.arg = endpoint.get();
  params.err_handler.cb = [](void* arg, ucp_ep_h, ucs_status_t status) {
    auto* failed = static_cast<Endpoint*>(arg);
    failed->transport->endpoint_failed(*failed, status);
  };
  // UCX's shared-memory transports do not support peer error handling, and UCX drops them if it is requested. So
  // request it only for peers that shared memory cannot reach: another host or namespace, or shared memory disabled.
  params.err_mode = UCP_ERR_HANDLING_MODE_NONE;
  if (!settings_.memory || host != host_) params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
  const UcxLogCapture log(settings_.quiet);
  ucs_status_t status = ucp_ep_create(worker_, &params, &endpoint->handle);
  if (status == UCS_ERR_UNREACHABLE && params.err_mode == UCP_ERR_HANDLING_MODE_PEER) {
    log_.info("comm-ucx: the transports to rank {} do not detect its death; only its heartbeat does", rank);
    params.err_mode = UCP_ERR_HANDLING_MODE_NONE;
    status = ucp_ep_create(worker_, &params, &endpoint->handle);
  }
  check_ucx(status, text("cannot connect to rank {}", rank), settings_, log);
  return *endpoints_.emplace_back(std::move(endpoint));
}

void Transport::endpoint_failed(Endpoint& endpoint, ucs_status_t status) noexcept {
  if (endpoint.status != UCS_OK) return;
  endpoint.status = status;
  for (TransportUser* user : users_) user->lost(endpoint);
}

void Transport::prepare(Request& request, bool receives) noexcept {
  request.receives = receives;
  request.posting = true;
  request.status = UCS_INPROGRESS;
  request.length = 0;
}

/// UCX may complete an operation inside the call that posts it, with or without calling the callback.
void Transport::begin(Request& request, void* result) noexcept {
  request.posting = false;
  if (!UCS_PTR_IS_PTR(result)) {
    request.status = UCS_PTR_STATUS(result);
  } else if (request.status == UCS_INPROGRESS) {
    request.handle = result;
  }
}

void Transport::send(Request& request, Endpoint& endpoint, const void* data, std::size_t bytes, Tag tag,
                     Side side) noexcept {
  request.status = UCS_ERR_CANCELED;
  if (retired_ || endpoint.status != UCS_OK) return;
  prepare(request, false);
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_MEMORY_TYPE;
  param.cb.send = on_sent;
  param.user_data = &request;
  param.memory_type = side == Side::device ? UcxMemory::type() : UCS_MEMORY_TYPE_HOST;
  if (side == Side::device) data = ucx_memory_->address(data);
  begin(request, ucp_tag_send_nbx(endpoint.handle, data, bytes, tag, &param));
}

void Transport::send(Request& request, Endpoint& endpoint, const void* first, std::size_t first_bytes,
                     const void* second, std::size_t second_bytes, Tag tag) noexcept {
  request.status = UCS_ERR_CANCELED;
  if (retired_ || endpoint.status != UCS_OK) return;
  prepare(request, false);
  request.pieces[0] = {const_cast<void*>(first), first_bytes};
  request.pieces[1] = {const_cast<void*>(second), second_bytes};
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_MEMORY_TYPE |
                       UCP_OP_ATTR_FIELD_DATATYPE;
  param.cb.send = on_sent;
  param.user_data = &request;
  param.memory_type = UCS_MEMORY_TYPE_HOST;
  param.datatype = ucp_dt_make_iov();
  begin(request, ucp_tag_send_nbx(endpoint.handle, request.pieces, 2, tag, &param));
}

void Transport::receive(Request& request, void* data, std::size_t bytes, Tag tag, Side side) noexcept {
  request.status = UCS_ERR_CANCELED;
  if (retired_) return;
  prepare(request, true);
  ucp_request_param_t param{};
  // Always complete through the callback, so that one path sets the length.
  param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_MEMORY_TYPE |
                       UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
  param.cb.recv = on_received;
  param.user_data = &request;
  param.memory_type = side == Side::device ? UcxMemory::type() : UCS_MEMORY_TYPE_HOST;
  if (side == Side::device) data = const_cast<void*>(ucx_memory_->address(data));
  begin(request, ucp_tag_recv_nbx(worker_, data, bytes, tag, ~Tag{0}, &param));
}

void Transport::send_sync(Request& request, Endpoint& endpoint, const void* data, std::size_t bytes, Tag tag) noexcept {
  request.status = UCS_ERR_CANCELED;
  if (retired_ || endpoint.status != UCS_OK) return;
  prepare(request, false);
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  param.cb.send = on_sent;
  param.user_data = &request;
  begin(request, ucp_tag_send_sync_nbx(endpoint.handle, data, bytes, tag, &param));
}

void Transport::on_sent(void* handle, ucs_status_t status, void* user_data) {
  auto& request = *static_cast<Request*>(user_data);
  request.handle = nullptr;
  request.status = status;
  ucp_request_free(handle);
  if (!request.posting) request.owner->completed(request);
}

void Transport::on_received(void* handle, ucs_status_t status, const ucp_tag_recv_info_t* info, void* user_data) {
  auto& request = *static_cast<Request*>(user_data);
  request.length = info->length;
  on_sent(handle, status, user_data);
}

void Transport::cancel(Request& request) noexcept {
  if (request.open() && !retired_) ucp_request_cancel(worker_, request.handle);
}

bool Transport::probe(Tag tag, Tag mask, Tag& found, std::size_t& bytes) noexcept {
  ucp_tag_recv_info_t info{};
  if (retired_ || !ucp_tag_probe_nb(worker_, tag, mask, 0, &info)) return false;
  found = info.sender_tag;
  bytes = info.length;
  return true;
}

void Transport::make_ready(Runnable& runnable) noexcept {
  if (runnable.listed_ || retired_) return;
  runnable.listed_ = true;
  runnable.next_ = nullptr;
  *last_ready_ = &runnable;
  last_ready_ = &runnable.next_;
}

bool Transport::run_ready() noexcept {
  bool ran = false;
  while (Runnable* runnable = first_ready_) {
    first_ready_ = runnable->next_;
    if (!first_ready_) last_ready_ = &first_ready_;
    runnable->listed_ = false;
    runnable->resume();
    ran = true;
  }
  return ran;
}

bool Transport::poll() noexcept {
  bool moved = false;
  for (int i = 0; i < kMaxPolls && !retired_; ++i) {
    const bool progressed = ucp_worker_progress(worker_) != 0;
    if (!run_ready() && !progressed) break;
    moved = true;
  }
  return moved;
}

void Transport::progress() noexcept {
  bool moved = poll();
  if (waiting_ == 0) return idling_.reset();
  for (int i = idling_.extra_polls(); i > 0 && !moved; --i) moved = poll();
  if (moved || copying_ > 0) {
    idling_.reset();
  } else if (!retired_) {
    idling_.idle();
  }
}

void Transport::retire(std::string_view why) noexcept {
  if (retired_) return;
  retired_ = true;
  skips_flush_ = true;
  for (TransportUser* user : users_) user->retired(why);
}

} // namespace triax::comm_ucx
