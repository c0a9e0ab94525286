"""Having people judge a sample of open answers, and how far automatic measures agree with them."""
