#include "launch/job.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <vector>

namespace triax::launch {

namespace {

constexpr const char* kRefusals = "launch/refusals"; // those of rank 0
constexpr const char* kRefused = "launch/refused";   // how many ranks refuse
constexpr const char* kFailures = "launch/failures"; // how many ranks have failed
constexpr auto kGrace = std::chrono::seconds(5);     // for other ranks to end, after a failure or a refusal
constexpr auto kVerdict = std::chrono::seconds(1);   // for who failed first to say so
constexpr auto kMoment = std::chrono::milliseconds(20);

control::JobToken token_for(const config::RunConfig* run) {
  if (const char* secret = std::getenv("TRIAX_JOB_TOKEN"); secret && *secret) return control::JobToken(secret);
  if (run && !run->launch.token_file.empty()) return control::JobToken::from_file(run->launch.token_file);
  return {};
}

} // namespace

JobRequest job_request(const Environment& environment, const config::RunConfig* run) {
  JobRequest out{environment, {}, 0, 300, 600, token_for(run)};
  if (!run) return out;
  out.interface = run->launch.interface;
  out.port = run->launch.port;
  out.start_timeout_s = run->launch.start_timeout_s;
  out.stall_timeout_s = run->train.stall_timeout_s;
  return out;
}

Job::Job(const JobRequest& request, train::StopSignals& signals) : request_(request), signals_(signals) {
  const Environment& environment = request.environment;
  control::Address address = environment.server;
  if (environment.serves && request.port != 0) address.port = request.port;
  if (environment.serves && environment.rank == 0) {
    const std::string interface = request.interface.empty() ? address.host : request.interface;
    server_ = std::make_unique<control::Server>(
        control::ServerRequest{interface, address.port, environment.world, request.token, request.stall_timeout_s});
    server_->start();
    address = server_->address();
  }
  control::ClientRequest client;
  client.server = address;
  client.token = request.token;
  client.rank = environment.rank;
  client.world = environment.world;
  client.start_timeout_s = request.start_timeout_s;
  client.silence_s = request.stall_timeout_s;
  client.place = [this] { return place(); };
  client.on_stop = [this](int signal) { signals_.ask(signal); };
  client_ = std::make_unique<control::Client>(client, abort_);
}

Job::~Job() = default;

bool Job::ready(const std::string& refused) {
  if (request_.environment.rank == 0) client_->set(kRefusals, refused);
  if (!refused.empty()) client_->add(kRefused, 1);
  try {
    client_->barrier("launch/start", deadline_in(request_.start_timeout_s));
  } catch (const Error& error) {
    throw Error(error.message(), error.where(), "launch.start_timeout_s is how long ranks may take to come");
  }
  return client_->add(kRefused, 0) == 0;
}

bool Job::rank_0_refused(const std::string& refused) {
  return client_->get(kRefusals, deadline_in(request_.start_timeout_s)) == refused;
}

void Job::watch(const train::Rank* rank) {
  const std::lock_guard lock(mutex_);
  rank_ = rank;
}

std::string Job::place() const {
  const std::lock_guard lock(mutex_);
  return rank_ ? rank_->place() : std::string();
}

bool Job::fails_first() {
  try {
    if (client_->add(kFailures, 1) == 1) return true;
  } catch (const Error&) { // it has been told already, or nobody is there to ask
    return false;
  }
  // The first is about to tell, and should be the one that the server hears first.
  const auto began = Clock::now();
  while (!abort_.raised() && Clock::now() - began < kVerdict) std::this_thread::sleep_for(kMoment);
  return false;
}

void Job::wait_for_others() const {
  if (!server_) return;
  const auto began = Clock::now();
  const auto somebody_is_here = [this] {
    const std::vector<control::RankStatus> ranks = server_->ranks();
    return std::any_of(ranks.begin() + 1, ranks.end(),
                       [](const auto& rank) { return rank.state == control::RankStatus::State::here; });
  };
  while (somebody_is_here() && Clock::now() - began < kGrace) std::this_thread::sleep_for(kMoment);
}

void Job::leave() {
  client_->leave();
  wait_for_others();
}

void Job::finish(double timeout_s) {
  client_->barrier("launch/end", deadline_in(timeout_s));
}

} // namespace triax::launch
