// SPDX-License-Identifier: Apache-2.0
#include "ucx_transport.hpp"

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
constexpr double kCloseS = 2; // seconds for sent messages to leave

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

Refusals UcxTransport::supports(const Settings& settings, bool direct) {
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

UcxTransport::UcxTransport(Device& of, const Settings& settings, Log& log)
    : Transport(of), log_(log), settings_(settings), host_(host_text()) {
  for (const std::string& note : settings.notes) log.info("comm-ucx: {}", note);
  try {
    open();
  } catch (...) {
    close();
    throw;
  }
  device().add_source(*this);
}

void UcxTransport::open() {
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
  if (device().kind() == DeviceKind::cuda) prepare_device_memory();
}

void UcxTransport::report_unused_variables() {
  if (!settings_.logs || !settings_.quiet) return; // UCX's own log has them
  if (const std::string unused = take_unused_variables(); !unused.empty())
    log_.warn("comm-ucx: unknown UCX environment variables: {}; correct or unset them", unused);
}

void UcxTransport::prepare_device_memory() {
  const bool supports_cuda = UcxMemory::supports_cuda(context_);
  if (settings_.device_memory == DeviceMemory::direct) require_cuda_memory(supports_cuda);
  const bool direct = supports_cuda && settings_.device_memory != DeviceMemory::staged;
  make_staging(settings_.staging_bytes, direct ? settings_.staging_bytes : 0);
  if (direct) ucx_memory_.emplace(staging_stream());
  if (settings_.logs) {
    log_.info("comm-ucx: transfers GPU memory {} (device_memory = \"{}\")",
              direct ? "directly" : "through pinned host memory", memory_word());
  }
}

UcxTransport::~UcxTransport() {
  device().remove_source(*this);
  close();
}

void UcxTransport::close() noexcept {
  // Let sent messages leave first. Not for endpoints that failed, nor after a peer was lost.
  const Deadline deadline = deadline_in(skips_flush() ? 0 : kCloseS);
  for (const auto& endpoint : endpoints_) {
    if (retired()) break;
    ucp_request_param_t param{};
    param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
    param.flags = endpoint->failure ? UCP_EP_CLOSE_FLAG_FORCE : 0;
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

p2p::Endpoint& UcxTransport::connect(std::string_view address, std::string_view host, int rank) {
  for (const auto& endpoint : endpoints_) {
    if (endpoint->address == address) return *endpoint;
  }
  auto endpoint = std::make_unique<UcxEndpoint>();
  endpoint->address = address;
  endpoint->transport = this;
  ucp_ep_params_t params{};
  params.field_mask =
      UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
  params.address = reinterpret_cast<const ucp_address_t*>(endpoint->address.data());
  params.err_handler.arg = endpoint.get();
  params.err_handler.cb = [](void* arg, ucp_ep_h, ucs_status_t status) {
    auto* failed = static_cast<UcxEndpoint*>(arg);
    failed->transport->lose(*failed, ucs_status_string(status));
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

/// UCX may complete an operation inside the call that posts it, with or without calling the callback.
void UcxTransport::begin(p2p::Request& request, void* result) noexcept {
  if (!UCS_PTR_IS_PTR(result)) {
    end(request, UCS_PTR_STATUS(result), 0);
  } else if (request.status == p2p::Status::in_progress) {
    request.handle = result;
  }
}

void UcxTransport::end(p2p::Request& request, ucs_status_t status, std::size_t length) noexcept {
  switch (status) {
    case UCS_OK:
      return complete(request, p2p::Status::ok, length);
    case UCS_ERR_CANCELED:
      return complete(request, p2p::Status::cancelled, length, ucs_status_string(status));
    case UCS_ERR_MESSAGE_TRUNCATED:
      return complete(request, p2p::Status::truncated, length, ucs_status_string(status));
    default:
      return complete(request, p2p::Status::failed, length, ucs_status_string(status));
  }
}

void UcxTransport::post_send(p2p::Request& request, p2p::Endpoint& endpoint, p2p::Tag tag, p2p::Side side,
                             bool sync) noexcept {
  static_assert(sizeof(p2p::Segment) == sizeof(ucp_dt_iov_t) &&
                offsetof(p2p::Segment, bytes) == offsetof(ucp_dt_iov_t, length));
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-static-cast-downcast): connect() has made it
  ucp_ep_h const to = static_cast<UcxEndpoint&>(endpoint).handle;
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_MEMORY_TYPE;
  param.cb.send = on_sent;
  param.user_data = &request;
  param.memory_type = side == p2p::Side::device ? UcxMemory::type() : UCS_MEMORY_TYPE_HOST;
  const void* data = request.segments[0].data;
  std::size_t count = request.segments[0].bytes;
  if (request.segments[1].data) {
    param.op_attr_mask |= UCP_OP_ATTR_FIELD_DATATYPE;
    param.datatype = ucp_dt_make_iov();
    data = request.segments;
    count = 2;
  } else if (side == p2p::Side::device) {
    data = ucx_memory_->address(data);
  }
  begin(request,
        sync ? ucp_tag_send_sync_nbx(to, data, count, tag, &param) : ucp_tag_send_nbx(to, data, count, tag, &param));
}

/// The source is in the tag.
void UcxTransport::post_receive(p2p::Request& request, p2p::Endpoint&, void* data, std::size_t bytes, p2p::Tag tag,
                                p2p::Side side) noexcept {
  ucp_request_param_t param{};
  // Always complete through the callback, so that one path sets the length.
  param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_MEMORY_TYPE |
                       UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
  param.cb.recv = on_received;
  param.user_data = &request;
  param.memory_type = side == p2p::Side::device ? UcxMemory::type() : UCS_MEMORY_TYPE_HOST;
  if (side == p2p::Side::device) data = const_cast<void*>(ucx_memory_->address(data));
  begin(request, ucp_tag_recv_nbx(worker_, data, bytes, tag, ~p2p::Tag{0}, &param));
}

void UcxTransport::on_sent(void* handle, ucs_status_t status, void* user_data) {
  ucp_tag_recv_info_t none{};
  on_received(handle, status, &none, user_data);
}

void UcxTransport::on_received(void* handle, ucs_status_t status, const ucp_tag_recv_info_t* info, void* user_data) {
  auto& request = *static_cast<p2p::Request*>(user_data);
  ucp_request_free(handle);
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-static-cast-downcast): a transport of this kind has posted it
  static_cast<UcxTransport*>(request.transport)->end(request, status, info->length);
}

void UcxTransport::post_cancel(p2p::Request& request) noexcept {
  ucp_request_cancel(worker_, request.handle);
}

bool UcxTransport::find(p2p::Endpoint&, p2p::Tag tag, p2p::Tag& found, std::size_t& bytes) noexcept {
  ucp_tag_recv_info_t info{};
  if (!ucp_tag_probe_nb(worker_, tag, p2p::kAnyType, 0, &info)) return false;
  found = info.sender_tag;
  bytes = info.length;
  return true;
}

} // namespace triax::comm_ucx
