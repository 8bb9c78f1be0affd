// A textbook simulation of dispatching, in the way an engineer would write it: the next event by the total
// rate, a departure from a list of the busy servers, an arrival that looks at d[p] servers of each pool.
//
//     textbook SEED WARM_UP EVENTS BATCHES <<< "ARRIVAL_RATE POOLS LEVELS, then of each pool
//                                              SERVERS SPEED D, and the rank of each level below LEVELS"
//
// prints the CPU seconds of the warm-up and of what follows, the highest level that was reached, and for each
// batch the time integral of the number of jobs and the number of arrivals.
#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <iostream>
#include <random>
#include <vector>

struct Pool {
    double speed;
    int d;
    std::vector<int> rank, jobs, order, place;  // busy servers stand first in `order`
    int busy = 0;

    void swap(int server, int to) {
        int other = order[to], here = place[server];
        order[to] = server, order[here] = other;
        place[server] = to, place[other] = here;
    }
    void add(int server) {
        if (jobs[server]++ == 0) swap(server, busy++);
    }
    void remove(int server) {
        if (--jobs[server] == 0) swap(server, --busy);
    }
};

int main(int, char** argv) {
    std::mt19937_64 random(std::atoll(argv[1]));
    const double warm_up = std::atof(argv[2]), events = std::atof(argv[3]);
    const int batches = std::atoi(argv[4]);
    double arrival_rate;
    int n_pools, levels;
    std::cin >> arrival_rate >> n_pools >> levels;
    std::vector<Pool> pools(n_pools);
    for (auto& pool : pools) {
        int servers;
        std::cin >> servers >> pool.speed >> pool.d;
        pool.rank.resize(levels);
        for (int& rank : pool.rank) std::cin >> rank;
        pool.jobs.assign(servers, 0);
        for (int i = 0; i < servers; i++) pool.order.push_back(i), pool.place.push_back(i);
    }

    std::exponential_distribution<double> exponential;
    std::uniform_real_distribution<double> uniform;
    std::vector<int> looked;
    long long jobs = 0, arrivals = 0;
    int highest = 0;
    double area = 0;
    auto run = [&](double steps) {
        for (; steps > 0; steps--) {
            double rate = arrival_rate;
            for (auto& pool : pools) rate += pool.speed * pool.busy;
            area += jobs * exponential(random) / rate;
            double left = uniform(random) * rate - arrival_rate;
            if (left < 0) {
                Pool* best_pool = nullptr;
                int best = -1, best_rank = 0;
                for (auto& pool : pools) {
                    std::uniform_int_distribution<int> any(0, int(pool.jobs.size()) - 1);
                    looked.clear();
                    while (int(looked.size()) < pool.d) {
                        int server = any(random);
                        if (std::find(looked.begin(), looked.end(), server) != looked.end()) continue;
                        looked.push_back(server);
                        int rank = pool.rank.at(pool.jobs[server]);
                        if (best < 0 || rank < best_rank) best = server, best_pool = &pool, best_rank = rank;
                    }
                }
                best_pool->add(best);
                highest = std::max(highest, best_pool->jobs[best]);
                jobs++, arrivals++;
            } else {
                auto pool = pools.begin();
                while (pool + 1 != pools.end() && left >= pool->speed * pool->busy) left -= pool->speed * pool++->busy;
                std::uniform_int_distribution<int> any(0, pool->busy - 1);
                pool->remove(pool->order[any(random)]);
                jobs--;
            }
        }
    };

    run(warm_up);
    const double begun = double(std::clock()) / CLOCKS_PER_SEC;
    std::vector<double> results;
    for (int i = 0; i < batches; i++) {
        area = 0, arrivals = 0;
        run(events / batches);
        results.push_back(area), results.push_back(double(arrivals));
    }
    std::cout.precision(17);
    std::cout << begun << ' ' << double(std::clock()) / CLOCKS_PER_SEC - begun << ' ' << highest << '\n';
    for (int i = 0; i < 2 * batches; i += 2) std::cout << results[i] << ' ' << results[i + 1] << '\n';
}
