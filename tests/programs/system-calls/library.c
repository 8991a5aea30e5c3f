/* A library as most are: code, constants that are relocated, data, and zeros beyond the pages of the file. */
int NAME(data) = 1;
int *const NAME(address) = &NAME(data);
char NAME(zeros)[1 << 14];

int *const *NAME(function)(void)
{
	return NAME(zeros)[0] ? 0 : &NAME(address);
}
