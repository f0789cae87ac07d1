// Prints the size of the world, and the latency and bandwidth between the first two processes.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

// seconds returns the time of one round trip of a message.
static double seconds(int rank, char *message, int size, int rounds) {
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    for (int i = 0; i < rounds; i++) {
        if (rank == 0) {
            MPI_Send(message, size, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
            MPI_Recv(message, size, MPI_CHAR, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else if (rank == 1) {
            MPI_Recv(message, size, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(message, size, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
        }
    }
    return (MPI_Wtime() - start) / rounds;
}

int main(int argc, char **argv) {
    int rank, size, large = 1 << 20;
    char *message = calloc(1, large);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size < 2) {
        printf("world of %d process\n", size);
        return MPI_Finalize();
    }
    double latency = seconds(rank, message, 1, 200) / 2;
    double transfer = seconds(rank, message, large, 20) / 2;
    if (rank == 0)
        printf("world of %d processes, latency %.1f us, bandwidth %.0f MB/s\n", size, latency * 1e6, large / transfer / 1e6);
    return MPI_Finalize();
}
