/* Small programs without a C library, whose accesses are recorded: a matrix product in blocks, a
 * sort, and accesses that cross lines or read and write at once. Which one: -DPROGRAM=1, 2, 3. */
typedef unsigned long u64;

static void leave(void)
{
    __asm__ volatile("syscall" : : "a"(60), "D"(0) : "rcx", "r11", "memory");
    __builtin_unreachable();
}

static u64 state = 88172645463325252UL;
static u64 draw(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

#if PROGRAM == 1
#define N 16
double a[N][N], b[N][N], c[N][N];
static void work(void)
{
    for (int i = 0; i < N; i += 8)
        for (int j = 0; j < N; j += 8)
            for (int x = i; x < i + 8; x++)
                for (int y = j; y < j + 8; y++) {
                    double sum = 0;
                    for (int k = 0; k < N; k++)
                        sum += a[x][k] * b[y][k];
                    c[x][y] = sum;
                }
}
#elif PROGRAM == 2
#define N 700
int numbers[N];
static void work(void)
{
    for (int i = 0; i < N; i++)
        numbers[i] = draw() % 10000;
    for (int gap = N / 2; gap > 0; gap /= 2)
        for (int i = gap; i < N; i++) {
            int value = numbers[i], j = i;
            for (; j >= gap && numbers[j - gap] > value; j -= gap)
                numbers[j] = numbers[j - gap];
            numbers[j] = value;
        }
}
#else
char bytes[1 << 16] __attribute__((aligned(4096)));
static void work(void)
{
    for (int i = 0; i < 1500; i++) {
        u64 at = draw() % (sizeof bytes - 16);
        if (i % 3 == 0)
            *(volatile u64 *)(bytes + at) += i;
        else if (i % 3 == 1)
            __atomic_fetch_add((u64 *)(bytes + (at & ~7UL)), 1, __ATOMIC_RELAXED);
        else
            *(volatile u64 *)(bytes + at) = *(volatile u64 *)(bytes + (at * 7) % (sizeof bytes - 16));
    }
}
#endif

void _start(void)
{
    work();
    __asm__ volatile("" : : : "memory");
    leave();
}
